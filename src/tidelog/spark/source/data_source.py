"""`format("tidelog")` as Spark sees it, for reading: the schema is that of Spark's Kafka source."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    IntegerType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from tidelog.spark.source.errors import OptionError
from tidelog.spark.source.options import check_options

if TYPE_CHECKING:
    from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader

NAME = "tidelog"
HEADERS = ArrayType(
    StructType([StructField("key", StringType()), StructField("value", BinaryType())])
)


class TopicSource(DataSource):
    """Spark makes one per query, in a Python beside the driver, and pickles it for every step."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> StructType:
        """Spark asks for it first: wrong options are refused here, before anything is read."""
        return source_schema(with_headers=check_options(self.options).includes_headers)

    def reader(self, schema: StructType) -> DataSourceReader:
        from tidelog.spark.source.batch_reader import BatchReader

        reader = BatchReader(self.options)
        self._refuse_other_schema(schema)
        return reader

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's
        from tidelog.spark.source.stream_reader import StreamReader

        reader = StreamReader(self.options)
        self._refuse_other_schema(schema)
        return reader

    def _refuse_other_schema(self, schema: StructType) -> None:
        expected = self.schema()
        if schema.simpleString() != expected.simpleString():
            raise OptionError(
                f"the schema of format {NAME} is fixed: {expected.simpleString()}; remove"
                " .schema(...), and convert the bytes with column functions"
            )


def source_schema(*, with_headers: bool) -> StructType:
    fields = [
        StructField("key", BinaryType()),
        StructField("value", BinaryType()),
        StructField("topic", StringType()),
        StructField("partition", IntegerType()),
        StructField("offset", LongType()),
        StructField("timestamp", TimestampType()),
        StructField("timestampType", IntegerType()),
    ]
    if with_headers:
        fields.append(StructField("headers", HEADERS))
    return StructType(fields)
