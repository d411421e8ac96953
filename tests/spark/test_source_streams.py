"""Streams: the batches, offsets and rows of Spark's own source, on Kafka and on Tidelog."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidelog
from tests.kafka import KafkaCluster
from tests.process.waiting import wait_until
from tests.spark.source_data import write_numbered, write_varied
from tests.spark.source_reading import OURS, THEIRS, Streamed, read_by_both, stream
from tests.spark.topics import NewTopic, wait_until_known
from tidelog.client.admin.offsets import delete_records
from tidelog.client.admin.topics import create_partitions
from tidelog.client.shells.blocking_clients import Admin
from tidelog.core.model.ids import TopicPartition
from tidelog.spark.source.offsets import lag

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Cluster = KafkaCluster | tidelog.Cluster


ON_KAFKA = [pytest.mark.java, pytest.mark.long]


@pytest.fixture(params=["tidelog3", pytest.param("kafka3", marks=ON_KAFKA)])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    found: Cluster = request.getfixturevalue(request.param)
    return found


def keys(streamed: Streamed) -> list[int]:
    return sorted(int(row.key) for row in streamed.rows)


def test_tidelog_is_read_as_by_sparks_own_source(
    spark: SparkSession,
    connector_jars: list[Path],
    tidelog3: tidelog.Cluster,
    new_topic: NewTopic,
) -> None:
    """The same rows of the same brokers, with all that a record can be."""
    topic, servers = new_topic(tidelog3, partitions=2), tidelog3.bootstrap_servers
    written = write_varied(servers, topic, partition=1)
    found = read_by_both(spark, servers, subscribe=topic, includeHeaders="true")
    assert len(found) == written


def test_a_stream_has_the_batches_of_sparks_own(
    spark: SparkSession,
    connector_jars: list[Path],
    cluster: Cluster,
    new_topic: NewTopic,
    tmp_path: Path,
) -> None:
    """Under maxOffsetsPerTrigger: the same ends, the same sizes, the same rows; then the rest."""
    topic, servers = new_topic(cluster, partitions=3), cluster.bootstrap_servers
    write_numbered(servers, topic, 100, partitions=3)
    options = {"subscribe": topic, "startingOffsets": "earliest", "maxOffsetsPerTrigger": "60"}

    def run(maker: str) -> Streamed:
        return stream(spark, maker, servers, tmp_path / maker, **options)

    ours, theirs = run(OURS), run(THEIRS)
    assert (ours.ends, ours.sizes) == (theirs.ends, theirs.sizes)
    assert len(ours.sizes) >= 2
    assert ours.rows == theirs.rows and keys(ours) == list(range(100))

    write_numbered(servers, topic, 20, partitions=3, first=100)
    ours, theirs = run(OURS), run(THEIRS)
    assert (ours.ends, ours.sizes, ours.rows) == (theirs.ends, theirs.sizes, theirs.rows)
    assert keys(ours) == list(range(120))


def test_progress_shows_offsets_and_lag(
    spark: SparkSession, tidelog3: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic, servers = new_topic(tidelog3, partitions=2), tidelog3.bootstrap_servers
    write_numbered(servers, topic, 40, partitions=2)
    streamed = stream(
        spark,
        OURS,
        servers,
        tmp_path,
        subscribe=topic,
        startingOffsets="earliest",
        maxOffsetsPerTrigger="30",
    )
    first, last = TopicPartition(topic, 0), TopicPartition(topic, 1)
    lags = [lag(each.sources[0]) for each in streamed.progress if each.numInputRows]
    assert lags == [{first: 5, last: 5}, {first: 0, last: 0}]
    assert streamed.ends == [{topic: {"0": 15, "1": 15}}, {topic: {"0": 20, "1": 20}}]


@pytest.mark.long
def test_new_partitions_are_read_from_their_first_record(
    spark: SparkSession, cluster: Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    """Also by a stream that began at the latest."""
    topic, servers = new_topic(cluster), cluster.bootstrap_servers
    write_numbered(servers, topic, 5, partitions=1)
    assert stream(spark, OURS, servers, tmp_path, subscribe=topic).rows == []

    with Admin({"bootstrap.servers": servers}) as admin:
        admin.ask(create_partitions(topic, total=3))
    wait_until_known(servers, topic, partitions=3)
    write_numbered(servers, topic, 9, partitions=3, first=9)

    assert keys(stream(spark, OURS, servers, tmp_path, subscribe=topic)) == list(range(9, 18))


@pytest.mark.long
def test_records_that_were_deleted_stop_a_stream_unless_it_may_go_on(
    spark: SparkSession, cluster: Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic, servers = new_topic(cluster), cluster.bootstrap_servers
    write_numbered(servers, topic, 10, partitions=1)
    options: dict[str, Any] = {"subscribe": topic, "startingOffsets": "earliest"}
    stream(spark, OURS, servers, tmp_path, **options)
    write_numbered(servers, topic, 20, partitions=1, first=10)
    with Admin({"bootstrap.servers": servers}) as admin:
        admin.ask(delete_records(TopicPartition(topic, 0), before_offset=15))

    with pytest.raises(Exception, match="these records were deleted; the log has offsets 15 to"):
        stream(spark, OURS, servers, tmp_path, **options)

    kept = stream(spark, OURS, servers, tmp_path, failOnDataLoss="false", **options)
    assert keys(kept) == [*range(10), *range(15, 30)]


def test_a_running_stream_reads_what_comes(
    spark: SparkSession, tidelog3: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    """Without an end: it starts at the latest, and reads what is written while it runs."""
    topic, servers = new_topic(tidelog3), tidelog3.bootstrap_servers
    write_numbered(servers, topic, 5, partitions=1)
    reader = spark.readStream.format(OURS).option("kafka.bootstrap.servers", servers)
    query = (
        reader.option("subscribe", topic)
        .load()
        .writeStream.format("memory")
        .queryName("running")
        .option("checkpointLocation", str(tmp_path))
        .start()
    )
    try:
        wait_until(lambda: query.lastProgress is not None, "the first progress")
        write_numbered(servers, topic, 5, partitions=1, first=5)
        wait_until(lambda: spark.table("running").count() == 5, "five records")
        assert sorted(int(row.key) for row in spark.table("running").collect()) == [5, 6, 7, 8, 9]
    finally:
        query.stop()
