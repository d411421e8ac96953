"""Reading the same with `format("tidelog")` and with `format("kafka")`, to compare."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.process.waiting import PATIENCE_S
from tidelog.spark.source.offsets import FROM

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

OURS, THEIRS = "tidelog", "kafka"
COMMITTED = {"kafka.isolation.level": "read_committed"}


def read(spark: SparkSession, maker: str, servers: str, **options: Any) -> DataFrame:
    reader = spark.read.format(maker).option("kafka.bootstrap.servers", servers)
    return reader.options(**options).load()


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row.topic, row.partition, row.offset))


def read_by_both(spark: SparkSession, servers: str, **options: Any) -> list[Row]:
    """The rows in order, after it has been seen that both sources give the same."""
    given = {**COMMITTED, **options}
    ours = read(spark, OURS, servers, **given)
    theirs = read(spark, THEIRS, servers, **given)
    assert ours.schema == theirs.schema
    found = in_order(ours.collect())
    assert found == in_order(theirs.collect())
    return found


@dataclass
class Streamed:
    """What one run of a stream wrote, and the ends and sizes of its batches."""

    rows: list[Row]
    ends: list[Any]
    sizes: list[int]
    progress: list[Any]


def stream(spark: SparkSession, maker: str, servers: str, place: Path, **options: Any) -> Streamed:
    """Everything that is available now goes to files in `place`, where the checkpoint is, too."""
    reader = spark.readStream.format(maker).option("kafka.bootstrap.servers", servers)
    query = (
        reader.options(**options)
        .load()
        .writeStream.format("parquet")
        .option("path", str(place / "rows"))
        .option("checkpointLocation", str(place / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(int(2 * PATIENCE_S)), "the query did not end"
    batches = [each for each in query.recentProgress if each.numInputRows]
    return Streamed(
        rows=in_order(spark.read.parquet(str(place / "rows")).collect()) if batches else [],
        ends=[_offsets(each.sources[0].endOffset) for each in batches],
        sizes=[each.numInputRows for each in batches],
        progress=list(query.recentProgress),
    )


def _offsets(text: str) -> Any:
    document = json.loads(text)
    document.pop(FROM, None)
    return document
