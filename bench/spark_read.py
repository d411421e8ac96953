"""Reading a topic and throwing the rows away: our source, Spark's own, confluent-kafka.

All read the same topic in turns, in one session, so that only the readers differ. What the two
sources give is compared before, row count and checksum.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

from bench.clusters import Cluster
from bench.spark_figures import CONFLUENT, OURS, READY, THEIRS, Line
from bench.spark_loads import PARTITIONS, Load
from bench.spark_rounds import Step, Summary, WrongRows, summary, timed
from bench.topics import delete_topic

if TYPE_CHECKING:
    from confluent_kafka import Message
    from pyspark.sql import DataFrame, SparkSession

READ_BAR = 3.0
CONSUMED_AT_ONCE = 10_000
POLL_S = 0.05
"""It waits so long for as many as were asked for, also at the very end."""
SILENCE_S = 60.0
OUR_FORMAT, THEIR_FORMAT = "tidelog", "kafka"


class Reading:
    """All ways to read one topic."""

    def __init__(self, spark: SparkSession, cluster: Cluster, load: Load, topic: str) -> None:
        self._spark = spark
        self._cluster = cluster
        self._load = load
        self._topic = topic

    def check(self) -> None:
        """WrongRows unless both sources give everything, and the same."""
        ours, theirs = (
            summary(frame_of(self._spark, each, self._cluster.address, self._topic))
            for each in (OUR_FORMAT, THEIR_FORMAT)
        )
        if ours != theirs or ours.rows != self._load.read_records:
            raise WrongRows(f"of {self._load.read_records} records: ours {ours}, theirs {theirs}")

    def steps(self) -> list[Step]:
        line = Line(title=f"read → noop, {self._load.name}", bar=READ_BAR)
        ways: dict[str, Callable[[], object]] = {
            OURS: partial(self._to_noop, OUR_FORMAT),
            THEIRS: partial(self._to_noop, THEIR_FORMAT),
            CONFLUENT: self._by_confluent,
            READY: self._ready_to_noop,
        }
        records = self._load.read_records
        return [
            Step(lines=(line,), who=who, records=records, take=partial(timed, way))
            for who, way in ways.items()
        ]

    def close(self) -> None:
        delete_topic(self._cluster, self._topic)

    def _to_noop(self, maker: str) -> None:
        """All rows and columns go to Spark's sink that does nothing."""
        _to_noop(frame_of(self._spark, maker, self._cluster.address, self._topic))

    def _ready_to_noop(self) -> None:
        """No topic at all: what our source would do if fetching and decoding took no time."""
        from bench import spark_ready

        self._spark.dataSource.register(spark_ready.ReadySource)
        reader = self._spark.read.format(spark_ready.FORMAT)
        reader.option(spark_ready.RECORDS, self._load.read_records)
        reader.option(spark_ready.VALUE_BYTES, self._load.value_bytes)
        _to_noop(reader.load())

    def _by_confluent(self) -> None:
        """What a Python program without Spark does: one object per record, in one thread."""
        count = 0
        for message in committed(self._cluster.address, self._topic):
            message.key(), message.value()
            count += 1
        if count != self._load.read_records:
            raise WrongRows(f"{count} of {self._load.read_records} records came")


def committed(servers: str, topic: str) -> Iterator[Message]:
    """By confluent-kafka, which belongs to nobody here: all records that are published."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    settings = {
        "bootstrap.servers": servers,
        "group.id": "bench-spark",
        "enable.auto.commit": False,  # nobody keeps offsets of groups on Tidelog yet
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
        "fetch.queue.backoff.ms": 10,  # its default of a second would be most of the time
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(PARTITIONS)])
    ended: set[int | None] = set()
    heard_s = time.monotonic()
    while len(ended) < PARTITIONS:
        taken = consumer.consume(CONSUMED_AT_ONCE, POLL_S)
        if taken:
            heard_s = time.monotonic()
        elif time.monotonic() - heard_s > SILENCE_S:
            raise WrongRows(f"{topic}: nothing came for {SILENCE_S:g} s")
        for message in taken:
            error = message.error()
            if error is None:
                yield message
            elif error.code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise WrongRows(str(error))
    consumer.close()


def summary_of_committed(servers: str, topic: str) -> Summary:
    """The same as `summary` of the frame that was written."""
    rows = checksum = 0
    for message in committed(servers, topic):
        rows += 1
        checksum += zlib.crc32((message.key() or b"") + (message.value() or b""))
    return Summary(rows=rows, checksum=checksum)


def _to_noop(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def frame_of(spark: SparkSession, maker: str, servers: str, topic: str) -> DataFrame:
    """A topic from its beginning to its end."""
    reader = spark.read.format(maker).option("kafka.bootstrap.servers", servers)
    return reader.option("subscribe", topic).load()
