"""The source over what takes longer: much data, compaction, and leaders that die during a read."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidelog
from bench.clusters import Cluster, ThreeKafkas, TidelogCluster
from tests.kafka import KafkaBroker, KafkaCluster
from tests.kafka.tools import QUICK_START
from tests.process.cluster import UNHURRIED
from tests.process.waiting import PATIENCE_MS, PATIENCE_S, wait_until
from tests.spark.source_data import (
    CODECS,
    FIRST_TIMESTAMP_MS,
    flush,
    producer,
    write_numbered,
)
from tests.spark.source_reading import OURS, THEIRS, read, read_by_both
from tests.spark.topics import NewTopic, make_topic
from tidelog.client.admin.offsets import delete_records
from tidelog.client.shells.blocking_clients import Admin
from tidelog.client.shells.range_reader import RangeClient
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.record_batch import batches

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.long
MANY = 400_000
COMPACTED, KEYS, IN_A_SEGMENT = 2_000, 19, 25


def write_many(servers: str, topic: str, *, partitions: int, codec: str, records: int) -> None:
    sender = producer(servers, compression_type=codec, linger_ms=50)
    for number in range(records):
        while True:
            try:
                sender.produce(
                    topic,
                    key=b"%d" % number if number % 7 else None,
                    value=b"value %d " % number * (number % 11),
                    headers=[("n", b"%d" % number)] if number % 5 == 0 else None,
                    partition=number % partitions,
                    timestamp=FIRST_TIMESTAMP_MS + number,
                )
                break
            except BufferError:
                sender.poll(0.1)
    flush(sender)


@pytest.mark.java
def test_many_records_of_every_codec(
    spark: SparkSession, connector_jars: list[Path], kafka3: KafkaCluster, new_topic: NewTopic
) -> None:
    """Hundreds of thousands, in small and in large fetches, by their number and a hash of all."""
    topic, servers = new_topic(kafka3, partitions=3), kafka3.bootstrap_servers
    for codec in CODECS:
        write_many(servers, topic, partitions=3, codec=codec, records=MANY // len(CODECS))

    def summed(maker: str, **options: Any) -> Any:
        rows = read(spark, maker, servers, subscribe=topic, includeHeaders="true", **options)
        return rows.selectExpr(
            "count(*)",
            "sum(cast(xxhash64(key, value, topic, partition, offset, timestamp, timestampType)"
            " as decimal(38,0)))",
            "sum(cast(xxhash64(to_json(headers)) as decimal(38,0)))",
        ).collect()

    theirs = summed(THEIRS)
    assert theirs[0][0] == MANY
    for fetch_bytes in ("70000", "1000000", "16000000"):
        assert summed(OURS, **{"kafka.max.partition.fetch.bytes": fetch_bytes}) == theirs
    assert summed(OURS, minPartitions="13") == theirs


@pytest.fixture
def compacting() -> Iterator[KafkaBroker]:
    settings = {"log.cleaner.backoff.ms": "100", "log.retention.ms": "-1"}
    with KafkaBroker(settings=settings, java_options=QUICK_START) as broker:
        yield broker


@pytest.mark.java
def test_gaps_of_compaction(
    spark: SparkSession, connector_jars: list[Path], compacting: KafkaBroker
) -> None:
    """Most offsets are gone; ranges begin and end in the gaps. All that can be compacted must be
    before anybody reads: of each key the newest in the segments that are closed, and the last
    segment as it is. Two readers would else see two topics."""
    servers, topic = compacting.address, "compacted"
    configs = {
        "cleanup.policy": "compact",
        "min.cleanable.dirty.ratio": "0.01",
        "segment.ms": "1000",
        "delete.retention.ms": "0",
    }
    make_topic(servers, topic, partitions=1, replicas=1, configs=configs)
    sender = producer(servers, linger_ms=PATIENCE_MS)  # a batch is what is flushed at once
    for number in range(COMPACTED):
        timestamp_ms = FIRST_TIMESTAMP_MS + 100 * number
        key = b"%d" % (number % KEYS)
        sender.produce(topic, key=key, value=b"%d" % number, partition=0, timestamp=timestamp_ms)
        if number % IN_A_SEGMENT == IN_A_SEGMENT - 1:
            flush(sender)
    part = TopicPartition(topic, 0)
    left = KEYS + IN_A_SEGMENT
    wait_until(lambda: _records(servers, part, COMPACTED) == left, "all to be compacted")

    assert len(read_by_both(spark, servers, subscribe=topic)) == left
    for first, end in ((0, 700), (333, 1_000), (501, 503), (1_900, COMPACTED)):
        read_by_both(
            spark,
            servers,
            subscribe=topic,
            startingOffsets=f'{{"{topic}":{{"0":{first}}}}}',
            endingOffsets=f'{{"{topic}":{{"0":{end}}}}}',
        )


def _records(servers: str, partition: TopicPartition, end_offset: int) -> int:
    with RangeClient({"bootstrap.servers": servers}) as client:
        pieces = client.read(partition, start_offset=0, end_offset=end_offset)
        return sum(header.records_count for piece in pieces for _, header in batches(piece.records))


@pytest.mark.parametrize("maker", [OURS, pytest.param(THEIRS, marks=pytest.mark.java)])
def test_a_crash_in_the_first_batch_does_not_move_its_start(
    spark: SparkSession,
    connector_jars: list[Path],
    tidelog3: tidelog.Cluster,
    new_topic: NewTopic,
    tmp_path: Path,
    maker: str,
) -> None:
    """Spark's checkpoint has only the end of the batch when it is run again. Its first records are
    deleted meanwhile: to begin after them, as `earliest` would now, would be to lose them."""
    topic, servers = new_topic(tidelog3), tidelog3.bootstrap_servers
    write_numbered(servers, topic, 10, partitions=1)

    def crash(rows: DataFrame, batch_id: int) -> None:
        raise RuntimeError("a crash in the first batch")

    def run() -> None:
        reader = spark.readStream.format(maker).option("kafka.bootstrap.servers", servers)
        writer = (
            reader.option("subscribe", topic)
            .option("startingOffsets", "earliest")
            .load()
            .writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
        )
        crashing = writer.foreachBatch(crash) if not has_crashed else writer.format("noop")
        crashing.start().awaitTermination()

    has_crashed = False
    with pytest.raises(Exception, match="a crash in the first batch"):
        run()
    with Admin({"bootstrap.servers": servers}) as admin:
        admin.ask(delete_records(TopicPartition(topic, 0), before_offset=5))
    has_crashed = True
    with pytest.raises(Exception, match="failOnDataLoss"):
        run()


@pytest.fixture(params=["tidelog", pytest.param("kafka", marks=pytest.mark.java)])
def own_cluster(request: pytest.FixtureRequest) -> Iterator[Cluster]:
    """Three brokers for one test, which may kill them."""
    if request.param == "kafka":
        with KafkaCluster(brokers=3, heap="256m", java_options=QUICK_START) as kafka:
            cluster = ThreeKafkas(kafka)
            cluster.wait_until_formed()
            yield cluster
    else:
        with tidelog.Cluster(brokers=3, settings=dict(UNHURRIED), faults=False) as ours:
            yield TidelogCluster(ours)


def test_a_leader_that_dies_during_a_read(
    spark: SparkSession, own_cluster: Cluster, tmp_path: Path
) -> None:
    """The task has read a part when the leader is killed; nothing is lost or twice."""
    topic, servers, records = "orders", own_cluster.address, 300_000
    make_topic(servers, topic, partitions=1, replicas=3, configs={"min.insync.replicas": "2"})
    write_many(servers, topic, partitions=1, codec="none", records=records)
    leader = own_cluster.partitions(topic)[0].leader_id
    has_begun, may_go_on = tmp_path / "begun", tmp_path / "go on"

    def hold_up(rows: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in rows:
            yield batch.select(["offset"])
            has_begun.touch()
            wait_until(may_go_on.exists, "the leader's death")

    frame = read(
        spark, OURS, servers, subscribe=topic, **{"kafka.max.partition.fetch.bytes": 65_536}
    )
    summed = frame.mapInArrow(hold_up, "offset long").selectExpr(
        "count(*)", "count(distinct offset)", "min(offset)", "max(offset)"
    )
    found: list[Any] = []
    reading = threading.Thread(target=lambda: found.extend(summed.collect()))
    reading.start()
    try:
        wait_until(has_begun.exists, "the first rows")
        own_cluster.kill(leader)
    finally:
        may_go_on.touch()
        reading.join(2 * PATIENCE_S)

    assert [tuple(row) for row in found] == [(records, records, 0, records - 1)]
