"""Spark finds `format("tidelog")` by this package's name, without registration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.spark.source.data_source import TopicSource

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceStreamWriter, DataSourceWriter
    from pyspark.sql.types import StructType


class DefaultSource(TopicSource):
    """What Spark looks for in every installed module whose name begins with `pyspark_`."""

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from tidelog.spark.sink.data_source import SinkBatchWriter

        return SinkBatchWriter(self.options, schema, overwrite=overwrite)

    def streamWriter(  # noqa: N802 - Spark's
        self, schema: StructType, overwrite: bool
    ) -> DataSourceStreamWriter:
        from tidelog.spark.sink.data_source import SinkStreamWriter

        return SinkStreamWriter(self.options, schema)
