"""Small clusters to begin a test with, built as real ones are: by applying records."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.core.metadata.cluster import PartitionState, partition_record
from tidelog.core.metadata.features import BOOTSTRAP
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import (
    BrokerEndpoint,
    FeatureLevelRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tidelog.core.model.ids import TopicId

DIRECTORY = bytes(15) + b"\x0d"


def topic_id(number: int) -> TopicId:
    return TopicId(number.to_bytes(16, "big"))


def broker(
    broker_id: int, *, rack: str | None = None, fenced: bool = False, leaving: bool = False
) -> RegisterBrokerRecord:
    return RegisterBrokerRecord(
        broker_id=broker_id,
        broker_epoch=broker_id,
        incarnation_id=bytes(16),
        end_points=[BrokerEndpoint(name="PLAINTEXT", host=f"host-{broker_id}", port=9092)],
        rack=rack,
        fenced=fenced,
        in_controlled_shutdown=leaving,
        log_dirs=[DIRECTORY],
    )


def state(*replicas: int, isr: Sequence[int] | None = None) -> PartitionState:
    in_sync = tuple(replicas if isr is None else isr)
    return PartitionState(
        replicas=replicas,
        isr=in_sync,
        leader=in_sync[0] if in_sync else None,
        leader_epoch=0,
        partition_epoch=0,
        directories=(DIRECTORY,) * len(replicas),
    )


def topic(name: str, number: int, *states: PartitionState) -> list[MetadataRecord]:
    records: list[MetadataRecord] = [TopicRecord(name=name, topic_id=topic_id(number))]
    records += [partition_record(topic_id(number), index, s) for index, s in enumerate(states)]
    return records


def image(*records: MetadataRecord) -> ClusterImage:
    """A cluster that has agreed on its features and then took these records."""
    built = ClusterImage()
    for name, level in BOOTSTRAP.items():
        built.apply(FeatureLevelRecord(name=name, feature_level=level))
    apply(built, records)
    return built


def apply(built: ClusterImage, records: Sequence[MetadataRecord]) -> None:
    for record in records:
        built.apply(record)
        built.check()
