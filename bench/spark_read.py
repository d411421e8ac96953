"""Reading a topic with Spark and throwing the rows away: our source, Spark's own, confluent-kafka.

All read the same topic in turns, in one session with two threads, so that only the readers differ.
The first round warms up and does not count. Values of one load differ in size, as they do in life;
`--equal` makes them equal.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from statistics import median
from typing import TYPE_CHECKING

from bench.brokers import KAFKA, TIDELOG
from bench.clusters import Cluster, running_cluster
from bench.librdkafka import Producer
from bench.rows import aligned
from tests.spark.connector import connector_jars

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OURS, THEIRS, CONFLUENT = "format tidelog", "Spark's format kafka", "confluent-kafka"
READERS = (OURS, THEIRS, CONFLUENT)
BAR = 3.0
"""Times as fast as Spark's own source on the same topic."""
PARTITIONS = 6
KEY_BYTES = 12
CONSUMED_AT_ONCE = 10_000
SILENCE_S = 60.0
HEADINGS = ("read → noop, local[2]", "k rows/s", "from", "to", "ratio", "bar", "met")


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """One topic: so many records with values of about one size."""

    name: str
    value_bytes: int
    records: int


LOADS = (
    Load(name="100 B", value_bytes=100, records=6_000_000),
    Load(name="1 KiB", value_bytes=1_024, records=1_200_000),
)


@dataclass(slots=True)
class Speeds:
    """Thousands of rows per second, by load and reader."""

    samples: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    def add(self, load: Load, reader: str, took_s: float) -> None:
        self.samples.setdefault((load.name, reader), []).append(load.records / took_s / 1_000)

    def ratio(self, load_name: str) -> float | None:
        ours, theirs = (self.samples.get((load_name, each)) for each in (OURS, THEIRS))
        return median(ours) / median(theirs) if ours and theirs else None

    def table(self) -> str:
        rows = [HEADINGS]
        for (load_name, reader), found in self.samples.items():
            figures = (f"{each:,.0f}" for each in (median(found), min(found), max(found)))
            judged = self._judged(load_name) if reader == OURS else ("", "", "")
            rows.append((f"{load_name}: {reader}", *figures, *judged))
        return aligned(rows)

    def _judged(self, load_name: str) -> tuple[str, str, str]:
        ratio = self.ratio(load_name)
        if ratio is None:
            return "", "", ""
        return f"{ratio:.2f}", f"{BAR:g}", "yes" if ratio >= BAR else "NO"


class Varied(Producer):
    """Writes values of half to one and a half times a size, with keys, by which they spread."""

    def __init__(self, address: str, topic: str, value_bytes: int) -> None:
        super().__init__(address, topic, b"v" * (2 * value_bytes))
        keys = b"".join(b"key %08d" % number for number in range(len(self._messages)))
        self._keys = ctypes.create_string_buffer(keys, len(keys))
        for number, message in enumerate(self._messages):
            message.len = value_bytes // 2 + number * 7_919 % value_bytes
            message.key = ctypes.addressof(self._keys) + number * KEY_BYTES
            message.key_len = KEY_BYTES


def measure(
    spark: SparkSession,
    cluster: Cluster,
    loads: Iterable[Load],
    *,
    rounds: int,
    readers: Iterable[str] = READERS,
    are_equal: bool = False,
) -> Speeds:
    """Every load in a topic of its own, read by all in turns."""
    speeds = Speeds()
    for load in loads:
        topic = f"spark-read-{load.value_bytes}"
        say(f"writing {load.records:,} records of {load.name} to {cluster.name}")
        write(cluster, topic, load, are_equal=are_equal)
        ways: dict[str, Callable[[], None]] = {
            OURS: partial(read_by, spark, "tidelog", cluster.address, topic),
            THEIRS: partial(read_by, spark, "kafka", cluster.address, topic),
            CONFLUENT: partial(read_by_confluent, cluster.address, topic, load.records),
        }
        for number in range(rounds + 1):
            for reader in readers:
                started_s = time.monotonic()
                ways[reader]()
                took_s = time.monotonic() - started_s
                say(f"  {number}/{rounds} {reader}: {load.records / took_s / 1_000:,.0f} k rows/s")
                if number:
                    speeds.add(load, reader, took_s)
    return speeds


def write(cluster: Cluster, topic: str, load: Load, *, are_equal: bool) -> None:
    """With librdkafka's defaults, three copies of everything."""
    brokers = sorted(cluster.addresses)
    count = len(brokers)
    cluster.create_topic(
        topic,
        [[brokers[(index + copy) % count] for copy in range(count)] for index in range(PARTITIONS)],
    )
    made = (
        Producer(cluster.address, topic, b"v" * load.value_bytes)
        if are_equal
        else Varied(cluster.address, topic, load.value_bytes)
    )
    with made as producer:
        producer.meet()
        producer.produce(load.records)
        producer.flush()


def read_by(spark: SparkSession, maker: str, servers: str, topic: str) -> None:
    """All rows and columns go to Spark's sink that does nothing."""
    reader = spark.read.format(maker).option("kafka.bootstrap.servers", servers)
    reader.option("subscribe", topic).load().write.format("noop").mode("overwrite").save()


def read_by_confluent(servers: str, topic: str, records: int) -> None:
    """What a Python program without Spark does: one object per record, in one thread."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": servers, "group.id": "bench-spark-read"})
    consumer.assign([TopicPartition(topic, each, OFFSET_BEGINNING) for each in range(PARTITIONS)])
    count = 0
    while count < records:
        taken = consumer.consume(CONSUMED_AT_ONCE, SILENCE_S)
        if not taken:
            raise SystemExit(f"{count} of {records} records came, then nothing more")
        for message in taken:
            message.key(), message.value()
        count += len(taken)
    consumer.close()


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main(arguments: list[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    from tidelog.spark import spark_session

    extra = {"spark.jars": ",".join(map(str, connector_jars()))}
    spark = spark_session(app="bench spark read", master="local[2]", extra=extra)
    loads = [
        Load(
            name=each.name, value_bytes=each.value_bytes, records=int(each.records * options.volume)
        )
        for each in LOADS
    ]
    with running_cluster(options.brokers) as cluster:
        speeds = measure(spark, cluster, loads, rounds=options.rounds, are_equal=options.equal)
    print(f"on three brokers of {options.brokers}")
    print(speeds.table())
    spark.stop()
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Reading a topic with Spark, local[2].")
    parser.add_argument("--brokers", choices=(TIDELOG, KAFKA), default=KAFKA)
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument("--volume", type=float, default=1.0, help="times the usual records")
    parser.add_argument("--equal", action="store_true", help="values of equal sizes")
    return parser


if __name__ == "__main__":
    raise SystemExit(main())
