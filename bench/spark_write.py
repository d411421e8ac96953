"""Writing with Spark: our exactly-once sink, and Spark's own, which may write a row twice.

Both write the same rows, which lie in Spark's memory, to a fresh topic of three copies with
`acks=all`; ours in one transaction. Ours must have all rows of an output partition in one task:

- *with the shuffle*: rows lie in any order. Ours moves them (`tidelog.spark.arranged`), theirs is
  told to move them by key (`repartition`), which it does not need.
- *without the shuffle*: ours gets rows that were arranged before, theirs writes them as they lie.
- *ours with, theirs without*: the two ways in which users of the one and of the other write a frame
  of any order. Nothing more is measured for it.
- *copy*: a stream from topic to topic, of all records in one batch: our source into
  `foreachBatch(exactly_once)`, with its shuffle; Spark's own source into its own sink, without.

After each write confluent-kafka reads what is published: count and checksum must be those of the
input.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from bench.clusters import Cluster
from bench.spark_figures import OURS, THEIRS, Line
from bench.spark_loads import PARTITIONS, Load
from bench.spark_read import OUR_FORMAT, THEIR_FORMAT, frame_of, summary_of_committed
from bench.spark_rounds import Step, Summary, WrongRows, summary, timed
from bench.topics import create_topic, delete_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming import DataStreamWriter

WRITE_BAR = 1.5
TASKS = 2
COLUMNS = ("key", "value")
Write = Callable[[str], None]
"""Into the topic of that name."""


class Writing:
    """All ways to write one set of rows."""

    def __init__(self, spark: SparkSession, cluster: Cluster, load: Load, topic: str) -> None:
        from pyspark.storagelevel import StorageLevel

        from tidelog.spark import arranged

        self._spark = spark
        self._cluster = cluster
        self._load = load
        self._topic = topic
        source = frame_of(spark, THEIR_FORMAT, cluster.address, topic).select(*COLUMNS)
        self._rows = source.repartition(PARTITIONS).persist(StorageLevel.MEMORY_ONLY)
        placed = arranged(self._rows, cluster.address, topic=topic).drop("topic")
        self._arranged = placed.persist(StorageLevel.MEMORY_ONLY)
        self._expected = summary(self._rows)
        _compare(summary(self._arranged), self._expected, "the arranged rows")
        if self._expected.rows != load.written_records:
            raise WrongRows(f"{self._expected} of {load.written_records} records")

    def steps(self) -> list[Step]:
        name = self._load.name
        shuffled, arranged, mixed, copied = (
            Line(title=f"{title}, {name}", bar=WRITE_BAR)
            for title in (
                "write, with the shuffle",
                "write, without the shuffle",
                "write, ours with, theirs without",
                "copy topic → topic",
            )
        )
        return [
            self._step((shuffled, mixed), OURS, self._ours_shuffled),
            self._step((shuffled,), THEIRS, self._theirs_shuffled),
            self._step((arranged,), OURS, partial(self._ours, self._arranged)),
            self._step((arranged, mixed), THEIRS, partial(self._theirs, self._rows)),
            self._step((copied,), OURS, self._our_copy),
            self._step((copied,), THEIRS, self._their_copy),
        ]

    def close(self) -> None:
        self._arranged.unpersist(blocking=True)
        self._rows.unpersist(blocking=True)
        delete_topic(self._cluster, self._topic)

    def _step(self, lines: tuple[Line, ...], who: str, write: Write) -> Step:
        records = self._load.written_records
        return Step(lines=lines, who=who, records=records, take=partial(self._take, write))

    def _take(self, write: Write) -> float:
        """Only the write is timed, not that its topic is made, checked and deleted."""
        topic = create_topic(self._cluster, partitions=PARTITIONS)
        took_s = timed(partial(write, topic))
        found = summary_of_committed(self._cluster.address, topic)
        _compare(found, self._expected, "what was published")
        delete_topic(self._cluster, topic)
        return took_s

    # The ways.

    def _ours_shuffled(self, topic: str) -> None:
        from tidelog.spark import arranged

        self._ours(arranged(self._rows, self._cluster.address, topic=topic), topic)

    def _theirs_shuffled(self, topic: str) -> None:
        self._theirs(self._rows.repartition(TASKS, "key"), topic)

    def _ours(self, frame: DataFrame, topic: str) -> None:
        writer = frame.write.format(OUR_FORMAT).option("topic", topic).mode("append")
        writer.option("kafka.bootstrap.servers", self._cluster.address).save()

    def _theirs(self, frame: DataFrame, topic: str) -> None:
        writer = frame.write.format(THEIR_FORMAT).option("topic", topic).option("kafka.acks", "all")
        writer.option("kafka.bootstrap.servers", self._cluster.address).save()

    def _our_copy(self, topic: str) -> None:
        from tidelog.spark import exactly_once

        sink = exactly_once(self._cluster.address, f"bench-{topic}", topic=topic)
        try:
            self._copy(OUR_FORMAT, lambda rows: rows.writeStream.foreachBatch(sink))
        finally:
            sink.close()

    def _their_copy(self, topic: str) -> None:
        options = {"kafka.bootstrap.servers": self._cluster.address, "kafka.acks": "all"}

        def into(rows: DataFrame) -> DataStreamWriter:
            writer = rows.writeStream.format(THEIR_FORMAT).option("topic", topic)
            return writer.options(**options)

        self._copy(THEIR_FORMAT, into)

    def _copy(self, maker: str, into: Callable[[DataFrame], DataStreamWriter]) -> None:
        """Everything that is there now, then the query ends."""
        checkpoint = tempfile.mkdtemp(prefix="tidelog-bench-")
        reader = self._spark.readStream.format(maker).option("subscribe", self._topic)
        reader = reader.option("kafka.bootstrap.servers", self._cluster.address)
        rows = reader.option("startingOffsets", "earliest").load().select(*COLUMNS)
        writer = into(rows).option("checkpointLocation", checkpoint)
        try:
            writer.trigger(availableNow=True).start().awaitTermination()
        finally:
            shutil.rmtree(checkpoint, ignore_errors=True)


def _compare(found: Summary, expected: Summary, what: str) -> None:
    if found != expected:
        raise WrongRows(f"{what}: {found} instead of {expected}")
