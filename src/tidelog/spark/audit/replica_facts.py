"""What the disks tell of a topic before its records are read: who leads, and who must agree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pyspark.sql import DataFrame, SparkSession

from tidelog.spark.audit.broker_facts import BrokerFacts
from tidelog.spark.audit.facts import PartitionFacts, TopicFacts
from tidelog.spark.audit.refused import AuditRefused
from tidelog.spark.audit.replicas import Replica
from tidelog.spark.audit.segment_frames import Log

SPARK_FLOORS = (
    "node int, partition int, leading_node int, log_start_offset bigint, log_end_offset bigint, "
    "committed_offset bigint, leading_start_offset bigint"
)


def one_topic_id(replicas: Sequence[Replica]) -> str | None:
    """The id that all these directories have; two topics of one name cannot be audited at once."""
    first = next((each for each in replicas if each.topic_id is not None), None)
    for each in replicas:
        if first is not None and each.topic_id not in (None, first.topic_id):
            raise AuditRefused(
                f"{each.directory} is of topic id {each.topic_id}, {first.directory} of "
                f"{first.topic_id}: one of them was deleted"
            )
    return None if first is None else first.topic_id


def facts_from_disks(
    topic: str, logs: Sequence[Log], leaders: Mapping[int, Log], *, is_compacted: bool
) -> TopicFacts:
    """The topic as its leading replicas have it."""
    partitions = {}
    for index, lead in sorted(leaders.items()):
        replicas = [log.replica for log in logs if log.replica.partition == index]
        partitions[index] = PartitionFacts(
            partition=index,
            log_start_offset=lead.replica.log_start_offset,
            end_offset=lead.end_offset,
            log_end_offset=lead.end_offset,
            high_watermark=max(each.high_watermark or 0 for each in replicas),
            read_from=f"the disk of replica {lead.replica.node_id}, which has the newest leader "
            f"epoch ({lead.leader_epoch})",
            replicas=tuple(each.node_id for each in replicas),
        )
    topic_id = one_topic_id([log.replica for log in logs])
    return TopicFacts(
        topic=topic, topic_id=topic_id, is_compacted=is_compacted, partitions=partitions
    )


def floor_frame(
    spark: SparkSession,
    logs: Iterable[Log],
    leaders: Mapping[int, Log],
    told: BrokerFacts | None,
) -> DataFrame:
    """For each replica how far it must agree with the leading one: as far as it knew everything to
    be committed, by its own checkpoint, or because brokers say that it is in sync."""
    rows = []
    for log in logs:
        replica = log.replica
        lead = leaders[replica.partition]
        committed = replica.high_watermark or 0
        if told is not None and replica.node_id in told.in_sync.get(replica.partition, ()):
            committed = max(committed, told.topic.partitions[replica.partition].high_watermark)
        rows.append(
            (
                replica.node_id,
                replica.partition,
                lead.replica.node_id,
                replica.log_start_offset,
                log.end_offset,
                committed,
                lead.replica.log_start_offset,
            )
        )
    return spark.createDataFrame(rows, SPARK_FLOORS)
