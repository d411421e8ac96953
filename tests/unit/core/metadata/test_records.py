"""Metadata records: Kafka's numbers and bytes, and nothing that is not understood is skipped."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import broker, state, topic_id
from tidelog.core.metadata.cluster import partition_record
from tidelog.core.metadata.records import (
    RECORD_TYPES,
    UNFENCED,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    NoOpRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
    UnregisterBrokerRecord,
    decode_record,
    encode_record,
)
from tidelog.core.wire.codec import MalformedMessage

ID = topic_id(0xABCDEF)

EXAMPLES: list[MetadataRecord] = [
    broker(1, rack="a"),
    TopicRecord(name="orders", topic_id=ID),
    partition_record(ID, 3, state(1, 2, 3, isr=(2, 3))),
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"),
    ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value=None),
    PartitionChangeRecord(
        partition_id=3,
        topic_id=ID,
        isr=[2],
        leader=2,
        leader_recovery_state=1,
        eligible_leader_replicas=[3],
        last_known_elr=[],
        directories=[bytes(16)] * 3,
    ),
    RemoveTopicRecord(topic_id=ID),
    FeatureLevelRecord(name="metadata.version", feature_level=30),
    ProducerIdsRecord(broker_id=1, broker_epoch=7, next_producer_id=2_000),
    BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=7, fenced=UNFENCED),
    NoOpRecord(),
    UnregisterBrokerRecord(broker_id=1, broker_epoch=7),
    ClearElrRecord(topic_name="orders"),
]


@pytest.mark.parametrize("record", EXAMPLES, ids=lambda record: type(record).__name__)
def test_a_record_comes_back_as_it_was_written(record: MetadataRecord) -> None:
    assert decode_record(encode_record(record)) == record


def test_every_type_has_an_example() -> None:
    assert {type(record) for record in EXAMPLES} == set(RECORD_TYPES.values())


@pytest.mark.parametrize(
    ("record", "expected"),
    [
        # frame version, type, version, then the fields and the count of tagged fields
        (NoOpRecord(), "01 14 00 00"),
        (TopicRecord(name="a", topic_id=ID), "01 02 00 02 61 " + ID.hex() + " 00"),
        (RemoveTopicRecord(topic_id=ID), "01 09 00 " + ID.hex() + " 00"),
        (FeatureLevelRecord(name="x", feature_level=2), "01 0c 00 02 78 0002 00"),
        (
            ConfigRecord(resource_type=4, resource_name="", name="n", value=None),
            "01 04 00 04 01 02 6e 00 00",
        ),
        (
            PartitionChangeRecord(partition_id=1, topic_id=ID, leader=5),
            "01 05 02 00000001 " + ID.hex() + " 01 01 04 00000005",
        ),
        (
            BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=2, fenced=UNFENCED),
            "01 11 03 00000001 0000000000000002 01 00 01 ff",
        ),
        (
            UnregisterBrokerRecord(broker_id=1, broker_epoch=2),
            "01 01 00 00000001 0000000000000002 00",
        ),
        (ClearElrRecord(topic_name="a"), "01 1c 00 02 61 00"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_bytes_are_kafkas(record: MetadataRecord, expected: str) -> None:
    assert encode_record(record) == bytes.fromhex(expected)


@pytest.mark.parametrize(
    "value",
    [
        None,
        b"",
        b"\x01",
        b"\x01\x14",
        b"\x00\x14\x00\x00",  # frame version 0
        b"\x01\x07\x00\x00",  # a type that is not used: FenceBroker
        b"\x01\x14\x01\x00",  # a version of the future
        b"\x01\x14\x00\x00\x00",  # something behind the end
    ],
)
def test_what_is_not_understood_stops_the_reading(value: bytes | None) -> None:
    with pytest.raises(MalformedMessage):
        decode_record(value)
