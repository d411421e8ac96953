"""`format("tidelog")` as Spark sees it, the reading half."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from tidelog.spark.source.errors import OptionError
from tidelog.spark.source.options import check_options
from tidelog.spark.source.schema import source_schema

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader

NAME = "tidelog"


class TopicSource(DataSource):
    """Spark makes one per query, in a Python beside the driver, and pickles it for every step."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        """The first that Spark asks for: wrong options are told here, before anything is read."""
        return source_schema(with_headers=check_options(self.options).includes_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        from tidelog.spark.source.batch_reader import BatchReader

        reader = BatchReader(self.options)
        self._refuse_another(schema)
        return reader

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        from tidelog.spark.source.stream_reader import StreamReader

        reader = StreamReader(self.options)
        self._refuse_another(schema)
        return reader

    def _refuse_another(self, schema: StructType) -> None:
        expected = self.schema()
        if schema.simpleString() != expected.simpleString():
            raise OptionError(
                f"the schema of format {NAME} is fixed: {expected.simpleString()}; leave"
                " .schema(...) away, and use functions of columns to make something of the bytes"
            )
