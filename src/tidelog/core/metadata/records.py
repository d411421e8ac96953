"""The records of the metadata log: Kafka's record types, ids and layouts, as far as they are used.

A record is a value in the log with a small frame around it: frame version, record type, record
version, then the fields. The sentinels in these fields (-1 for "no leader", -2 for "as before")
belong to the format and go no further than the image.

A type that is missing here stops the reading: a fact that is not understood must not be skipped.
"""

from __future__ import annotations

from tidelog.core.wire.codec import MalformedMessage, decode, encode
from tidelog.core.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)
from tidelog.core.wire.varint import read_unsigned_varint, unsigned_varint

FRAME_VERSION = 1
NO_LEADER = -1
LEADER_AS_BEFORE = -2
RECOVERY_AS_BEFORE = -1
UNFENCED, FENCED = -1, 1


class BrokerEndpoint(Struct):
    """Where one listener of a broker is reached."""

    name: str = string()
    host: str = string()
    port: int = uint16()
    security_protocol: int = int16()


class BrokerFeature(Struct):
    """The levels of a feature that a broker could run."""

    name: str = string()
    min_supported_version: int = int16()
    max_supported_version: int = int16()


class RegisterBrokerRecord(Message, api_key=0, versions="0-4", flexible_from=0):
    """A broker process has come; it stays fenced until it has caught up."""

    broker_id: int = int32()
    is_migrating_zk_broker: bool = boolean("2+")
    incarnation_id: bytes = uuid()
    broker_epoch: int = int64()
    end_points: list[BrokerEndpoint] = array(BrokerEndpoint)
    features: list[BrokerFeature] = array(BrokerFeature)
    rack: str | None = string(nullable="0+", default=None)
    fenced: bool = boolean(default=True)
    in_controlled_shutdown: bool = boolean("1+")
    log_dirs: list[bytes] = array(uuid, "3+", tag=0)
    cordoned_log_dirs: list[bytes] | None = array(uuid, "4+", nullable="4+", default=None, tag=1)


class UnregisterBrokerRecord(Message, api_key=1, versions="0", flexible_from=0):
    """A broker is forgotten; it must register again to come back."""

    broker_id: int = int32()
    broker_epoch: int = int64()


class TopicRecord(Message, api_key=2, versions="0", flexible_from=0):
    """A topic exists from here on; its configs and partitions follow in the same batch."""

    name: str = string()
    topic_id: bytes = uuid()


class PartitionRecord(Message, api_key=3, versions="0-2", flexible_from=0):
    """A new partition and all that is known of it."""

    partition_id: int = int32(default=-1)
    topic_id: bytes = uuid()
    replicas: list[int] = array(int32)
    isr: list[int] = array(int32)
    removing_replicas: list[int] = array(int32)
    adding_replicas: list[int] = array(int32)
    leader: int = int32(default=NO_LEADER)
    leader_recovery_state: int = int8(tag=0)
    leader_epoch: int = int32(default=-1)
    partition_epoch: int = int32(default=-1)
    directories: list[bytes] = array(uuid, "1+")
    eligible_leader_replicas: list[int] | None = array(
        int32, "2+", nullable="2+", default=None, tag=1
    )
    last_known_elr: list[int] | None = array(int32, "2+", nullable="2+", default=None, tag=2)


class ConfigRecord(Message, api_key=4, versions="0", flexible_from=0):
    """One setting of one resource; without a value it is back at its default."""

    resource_type: int = int8()
    resource_name: str = string()
    name: str = string()
    value: str | None = string(nullable="0+", default=None)


class PartitionChangeRecord(Message, api_key=5, versions="0-2", flexible_from=0):
    """What is new about a partition. Naming a leader, even the same one, begins a leader epoch."""

    partition_id: int = int32(default=-1)
    topic_id: bytes = uuid()
    isr: list[int] | None = array(int32, nullable="0+", default=None, tag=0)
    leader: int = int32(default=LEADER_AS_BEFORE, tag=1)
    replicas: list[int] | None = array(int32, nullable="0+", default=None, tag=2)
    removing_replicas: list[int] | None = array(int32, nullable="0+", default=None, tag=3)
    adding_replicas: list[int] | None = array(int32, nullable="0+", default=None, tag=4)
    leader_recovery_state: int = int8(default=RECOVERY_AS_BEFORE, tag=5)
    directories: list[bytes] | None = array(uuid, "1+", nullable="1+", default=None, tag=8)
    eligible_leader_replicas: list[int] | None = array(
        int32, "2+", nullable="2+", default=None, tag=6
    )
    last_known_elr: list[int] | None = array(int32, "2+", nullable="2+", default=None, tag=7)


class RemoveTopicRecord(Message, api_key=9, versions="0", flexible_from=0):
    """A topic is gone, with its partitions and configs."""

    topic_id: bytes = uuid()


class FeatureLevelRecord(Message, api_key=12, versions="0", flexible_from=0):
    """The level of a feature that the cluster has agreed on; 0 is off."""

    name: str = string()
    feature_level: int = int16()


class ProducerIdsRecord(Message, api_key=15, versions="0", flexible_from=0):
    """All producer ids below this one are given away."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)
    next_producer_id: int = int64()


class BrokerRegistrationChangeRecord(Message, api_key=17, versions="0-3", flexible_from=0):
    """A registered broker is fenced, unfenced or leaving."""

    broker_id: int = int32()
    broker_epoch: int = int64()
    fenced: int = int8(tag=0)
    in_controlled_shutdown: int = int8("1+", tag=1)
    log_dirs: list[bytes] = array(uuid, "2+", tag=2)
    cordoned_log_dirs: list[bytes] | None = array(uuid, "3+", nullable="3+", default=None, tag=3)


class NoOpRecord(Message, api_key=20, versions="0", flexible_from=0):
    """Nothing happened; it only moves the log on."""


class ClearElrRecord(Message, api_key=28, versions="0", flexible_from=0):
    """Eligible leaders and last known leaders are forgotten: one topic's, or with "" all."""

    topic_name: str = string()


MetadataRecord = (
    RegisterBrokerRecord
    | UnregisterBrokerRecord
    | TopicRecord
    | PartitionRecord
    | ConfigRecord
    | PartitionChangeRecord
    | RemoveTopicRecord
    | FeatureLevelRecord
    | ProducerIdsRecord
    | BrokerRegistrationChangeRecord
    | NoOpRecord
    | ClearElrRecord
)

RECORD_TYPES: dict[int, type[MetadataRecord]] = {
    record_type.api_key: record_type
    for record_type in (
        RegisterBrokerRecord,
        UnregisterBrokerRecord,
        TopicRecord,
        PartitionRecord,
        ConfigRecord,
        PartitionChangeRecord,
        RemoveTopicRecord,
        FeatureLevelRecord,
        ProducerIdsRecord,
        BrokerRegistrationChangeRecord,
        NoOpRecord,
        ClearElrRecord,
    )
}

_FRAMES = {
    record_type: bytes((FRAME_VERSION,))
    + unsigned_varint(key)
    + unsigned_varint(record_type.versions[-1])
    for key, record_type in RECORD_TYPES.items()
}


def encode_record(record: MetadataRecord) -> bytes:
    """The value of a log record: always in the newest version, which the features allow."""
    record_type = type(record)
    return _FRAMES[record_type] + encode(record, record_type.versions[-1])


def decode_record(value: bytes | None) -> MetadataRecord:
    """The record in a log record's value. Raises MalformedMessage for anything unknown."""
    if value is None:
        raise MalformedMessage("a metadata record without a value")
    frame_version, position = read_unsigned_varint(value, 0)
    if frame_version != FRAME_VERSION:
        raise MalformedMessage(f"metadata frame version {frame_version}")
    key, position = read_unsigned_varint(value, position)
    version, position = read_unsigned_varint(value, position)
    record_type = RECORD_TYPES.get(key)
    if record_type is None or version not in record_type.versions:
        raise MalformedMessage(f"metadata record type {key} version {version}")
    return decode(record_type, memoryview(value), version, position)
