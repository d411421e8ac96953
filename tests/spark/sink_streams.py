"""Small queries that write through the exactly-once sink, and what readers get of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.process.waiting import PATIENCE_S
from tests.spark.brokers import Brokers
from tests.spark.sink_parts import read_committed, wait_until_decided
from tidelog.core.model.trace import ListTrace

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tidelog.spark.sink.exactly_once import ExactlyOnce


class Stream:
    """A query that reads a directory of files, one file per batch, and writes through a sink."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark = spark
        self.directory = directory
        self.files = directory / "in"
        self.files.mkdir()
        self.count = 0

    def add(self, *lines: str) -> None:
        """One more batch."""
        staged = self.directory / f"{self.count:03}.txt"
        staged.write_text("".join(f"{line}\n" for line in lines))
        staged.rename(self.files / staged.name)
        self.count += 1

    def run(
        self,
        function: Callable[[DataFrame, int], None],
        shape: Callable[[DataFrame], DataFrame] = lambda frame: frame,
        *,
        checkpoint: str = "checkpoint",
    ) -> None:
        """Until everything that is there has been written."""
        lines = (
            self.spark.readStream.format("text")
            .option("maxFilesPerTrigger", 1)
            .load(str(self.files))
        )
        query = (
            shape(lines)
            .writeStream.foreachBatch(function)
            .option("checkpointLocation", str(self.directory / checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(int(PATIENCE_S)), "the query did not end"
        finally:
            query.stop()


def sink(brokers: Brokers, topic: str, **more: Any) -> tuple[ExactlyOnce, ListTrace]:
    from tidelog.spark import exactly_once

    trace = ListTrace()
    given = {"topic": topic, **more}
    made = exactly_once(brokers.bootstrap_servers, topic, trace=trace, **given)
    return made, trace


def values(brokers: Brokers, topic: str) -> list[str]:
    """What readers of committed data get from the topic of that sink, sorted."""
    wait_until_decided(brokers.bootstrap_servers, topic)
    return sorted(read_committed(brokers.bootstrap_servers, topic))
