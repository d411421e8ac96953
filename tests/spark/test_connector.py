"""Spark's own Kafka connector, unmodified, on Apache Kafka and on Tidelog alike."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidelog
from tests.kafka import KafkaCluster
from tests.process.waiting import PATIENCE_S
from tests.spark.topics import NewTopic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.usefixtures("connector_jars")
RECORDS = 500
PARTITIONS = 3


@pytest.fixture(params=["tidelog3", pytest.param("kafka3", marks=pytest.mark.java)])
def cluster(request: pytest.FixtureRequest) -> KafkaCluster | tidelog.Cluster:
    found: KafkaCluster | tidelog.Cluster = request.getfixturevalue(request.param)
    return found


def test_it_writes_and_reads_a_topic(
    spark: SparkSession, cluster: KafkaCluster | tidelog.Cluster, new_topic: NewTopic
) -> None:
    """What it writes in a batch it reads back, each record once and without gaps in offsets."""
    topic = new_topic(cluster, partitions=PARTITIONS)
    servers = cluster.bootstrap_servers

    write(numbered(spark), servers, topic)
    found = read(spark, servers, topic).collect()

    assert sorted(int(row.key) for row in found) == list(range(RECORDS))
    assert all(row.value == b"value " + bytes(row.key) for row in found)
    assert len({row.partition for row in found}) == PARTITIONS
    for partition in range(PARTITIONS):
        offsets = sorted(row.offset for row in found if row.partition == partition)
        assert offsets == list(range(len(offsets)))


@pytest.mark.long
def test_it_streams_from_one_topic_to_another(
    spark: SparkSession,
    cluster: KafkaCluster | tidelog.Cluster,
    new_topic: NewTopic,
    tmp_path: Path,
) -> None:
    """A stream of two micro-batches copies everything, keys and values."""
    source, target = new_topic(cluster, partitions=PARTITIONS), new_topic(cluster)
    servers = cluster.bootstrap_servers
    write(numbered(spark), servers, source)

    query = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", RECORDS // 2)
        .load()
        .select("key", "value")
        .writeStream.format("kafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", target)
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(int(2 * PATIENCE_S)), "the query did not end"

    found = read(spark, servers, target).collect()
    assert sorted(int(row.key) for row in found) == list(range(RECORDS))
    assert sum(batch.numInputRows > 0 for batch in query.recentProgress) >= 2


def numbered(spark: SparkSession) -> DataFrame:
    return spark.range(RECORDS).selectExpr(
        "cast(id as string) as key", "concat('value ', id) as value"
    )


def write(rows: DataFrame, servers: str, topic: str) -> None:
    writer = rows.write.format("kafka").option("kafka.bootstrap.servers", servers)
    writer.option("topic", topic).save()


def read(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    reader = spark.read.format("kafka").option("kafka.bootstrap.servers", servers)
    return reader.option("subscribe", topic).load()
