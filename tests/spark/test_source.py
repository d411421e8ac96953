"""`format("tidelog")` reads what `format("kafka")` reads, row for row, on Apache Kafka."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from tests.kafka import KafkaCluster
from tests.spark.source_data import (
    CODECS,
    FIRST_TIMESTAMP_MS,
    open_transaction,
    write_numbered,
    write_transactions,
    write_varied,
)
from tests.spark.source_reading import OURS, THEIRS, read, read_by_both
from tests.spark.topics import NewTopic, make_topic

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.java, pytest.mark.usefixtures("connector_jars")]
NUMBERED = 90


@dataclass(frozen=True)
class Topics:
    """Topics that many tests read and none writes to."""

    servers: str
    varied: str
    """Partition 0 has all that a record can be, partition 1 transactions, partition 2 nothing."""
    numbered: str
    """Three partitions; record n has key n, in partition n modulo 3, at second n."""
    others: tuple[str, str]
    """Two topics of one partition each."""


@pytest.fixture(scope="module")
def topics(kafka3: KafkaCluster) -> Topics:
    servers = kafka3.bootstrap_servers
    made = Topics(servers, "source-varied", "source-numbered", ("source-other-a", "source-other-b"))
    for name, partitions in ((made.varied, 3), (made.numbered, 3), *((n, 1) for n in made.others)):
        make_topic(servers, name, partitions=partitions, replicas=3, configs={})
    write_varied(servers, made.varied, partition=0)
    write_transactions(servers, made.varied, partitions=2)
    write_numbered(servers, made.numbered, NUMBERED, partitions=3)
    for number, name in enumerate(made.others):
        write_numbered(servers, name, 10, partitions=1, first=100 * number)
    return made


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_all_that_a_record_can_be(spark: SparkSession, topics: Topics, isolation: str) -> None:
    """Codecs, headers, nulls, empty parts, committed and aborted transactions."""
    found = read_by_both(
        spark,
        topics.servers,
        subscribe=topics.varied,
        includeHeaders="true",
        **{"kafka.isolation.level": isolation},
    )

    assert {row.headers[0].value.decode() for row in found if row.headers and row.key} >= set(
        CODECS
    )
    assert any(row.key is None for row in found) and any(row.value is None for row in found)
    assert any(row.key == b"" for row in found) and any(row.value == b"" for row in found)
    aborted = [row for row in found if row.key and row.key.startswith((b"a 0 ", b"b 4 "))]
    assert bool(aborted) == (isolation == "read_uncommitted")
    offsets = [row.offset for row in found if row.partition == 1]
    assert len(offsets) < offsets[-1] + 1, "markers leave gaps"


def test_committed_is_what_is_read_unless_somebody_asks_for_more(
    spark: SparkSession, topics: Topics
) -> None:
    found = read(spark, OURS, topics.servers, subscribe=topics.varied).collect()
    assert not any(row.key and row.key.startswith(b"a 0 ") for row in found)


def at(**offsets: int) -> str:
    """Offsets or times of the numbered topic's partitions, as options want them."""
    return json.dumps({"source-numbered": {name[1:]: number for name, number in offsets.items()}})


def second(number: int) -> int:
    return FIRST_TIMESTAMP_MS + 1_000 * number


RANGES: dict[str, tuple[dict[str, Any], Callable[[int], bool]]] = {
    "everything": ({}, lambda n: True),
    "from earliest to latest": (
        {"startingOffsets": "earliest", "endingOffsets": "latest"},
        lambda n: True,
    ),
    "from offsets": (
        {"startingOffsets": at(p0=5, p1=-2, p2=29)},
        lambda n: n // 3 >= {0: 5, 1: 0, 2: 29}[n % 3],
    ),
    "to offsets": (
        {"endingOffsets": at(p0=5, p1=-1, p2=0)},
        lambda n: n // 3 < {0: 5, 1: 30, 2: 0}[n % 3],
    ),
    "between offsets": (
        {"startingOffsets": at(p0=5, p1=7, p2=0), "endingOffsets": at(p0=5, p1=8, p2=30)},
        lambda n: {0: False, 1: n // 3 == 7, 2: True}[n % 3],
    ),
    "from a time": ({"startingTimestamp": second(40)}, lambda n: n >= 40),
    "to a time": ({"endingTimestamp": second(40)}, lambda n: n < 40),
    "from times": (
        {"startingOffsetsByTimestamp": at(p0=second(0), p1=second(50), p2=second(87))},
        lambda n: n >= {0: 0, 1: 50, 2: 87}[n % 3],
    ),
    "to times": (
        {"endingOffsetsByTimestamp": at(p0=second(0), p1=second(50), p2=second(500))},
        lambda n: n < {0: 0, 1: 50, 2: 500}[n % 3],
    ),
    "from a time that some have passed": (
        {"startingTimestamp": second(88), "startingOffsetsByTimestampStrategy": "latest"},
        lambda n: n >= 88,
    ),
    "in many slices": ({"minPartitions": 7}, lambda n: True),
    "in small slices": ({"maxRecordsPerPartition": 11}, lambda n: True),
}


IN_EVERY_RUN = ("everything", "between offsets", "from a time", "to times", "in many slices")


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if name in IN_EVERY_RUN else pytest.mark.long) for name in RANGES],
)
def test_where_reading_begins_and_ends(spark: SparkSession, topics: Topics, name: str) -> None:
    options, is_wanted = RANGES[name]
    found = read_by_both(spark, topics.servers, subscribe=topics.numbered, **options)
    assert sorted(int(row.key) for row in found) == [n for n in range(NUMBERED) if is_wanted(n)]


@pytest.mark.long
def test_a_range_may_begin_and_end_inside_of_transactions(
    spark: SparkSession, topics: Topics
) -> None:
    """Whoever begins in the middle of an aborted transaction must hear that it was aborted."""
    everything = read(spark, THEIRS, topics.servers, subscribe=topics.varied).collect()
    end = max(row.offset for row in everything if row.partition == 1)
    for first in range(1, end, end // 4):
        bounds = {
            "startingOffsets": json.dumps({topics.varied: {"1": first}}),
            "endingOffsets": json.dumps({topics.varied: {"1": first + end // 5}}),
        }
        read_by_both(spark, topics.servers, assign=json.dumps({topics.varied: [1]}), **bounds)


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        ({"subscribe": "source-other-a, source-other-b"}, 20),
        ({"subscribePattern": "other-[ab]$"}, 20),
        ({"assign": '{"source-numbered":[2],"source-other-b":[0]}'}, 40),
    ],
)
def test_which_topics_are_read(
    spark: SparkSession, topics: Topics, subscription: dict[str, str], expected: int
) -> None:
    assert len(read_by_both(spark, topics.servers, **subscription)) == expected


def test_timestamps_of_the_broker(
    spark: SparkSession, kafka3: KafkaCluster, new_topic: NewTopic
) -> None:
    topic = new_topic(kafka3, message_timestamp_type="LogAppendTime")
    write_numbered(kafka3.bootstrap_servers, topic, 50, partitions=1)
    found = read_by_both(spark, kafka3.bootstrap_servers, subscribe=topic)

    assert {row.timestampType for row in found} == {1}
    assert all(row.timestamp.timestamp() * 1_000 > second(50) for row in found)


def test_an_open_transaction_is_the_end_for_whoever_reads_commits(
    spark: SparkSession, kafka3: KafkaCluster, new_topic: NewTopic
) -> None:
    topic, servers = new_topic(kafka3), kafka3.bootstrap_servers
    write_numbered(servers, topic, 5, partitions=1)
    with open_transaction(servers, topic):
        write_numbered(servers, topic, 5, partitions=1, first=5)
        assert len(read_by_both(spark, servers, subscribe=topic)) == 5
        uncommitted = {"kafka.isolation.level": "read_uncommitted"}
        assert len(read_by_both(spark, servers, subscribe=topic, **uncommitted)) == 20
    assert len(read_by_both(spark, servers, subscribe=topic)) == 10


def test_an_empty_topic_has_no_rows(
    spark: SparkSession, kafka3: KafkaCluster, new_topic: NewTopic
) -> None:
    topic = new_topic(kafka3, partitions=2)
    assert read_by_both(spark, kafka3.bootstrap_servers, subscribe=topic) == []


def test_every_action_sees_what_there_is_then(
    spark: SparkSession, kafka3: KafkaCluster, new_topic: NewTopic
) -> None:
    """As with Spark's own source: a frame is a question, and each action asks it again."""
    topic, servers = new_topic(kafka3), kafka3.bootstrap_servers
    write_numbered(servers, topic, 5, partitions=1)
    frames = [read(spark, maker, servers, subscribe=topic) for maker in (OURS, THEIRS)]
    assert [frame.count() for frame in frames] == [5, 5]
    write_numbered(servers, topic, 5, partitions=1, first=5)
    assert [frame.count() for frame in frames] == [10, 10]


def test_columns_can_be_worked_with(spark: SparkSession, topics: Topics) -> None:
    """SQL over the columns, through the same functions as before."""
    counted = []
    for maker in (OURS, THEIRS):
        frame = read(spark, maker, topics.servers, subscribe=topics.numbered)
        frame.createOrReplaceTempView(f"read_by_{maker}")
        rows = spark.sql(
            "select partition, count(*) as n, max(cast(cast(key as string) as int)) as most,"
            f" min(timestamp) as first from read_by_{maker} where offset % 2 = 0 group by partition"
        )
        counted.append(sorted(rows.collect()))
    assert counted[0] == counted[1]
