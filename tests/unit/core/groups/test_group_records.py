"""GroupMetadata records: Kafka's bytes, and what cannot be read."""

from __future__ import annotations

import pytest

from tidelog.core.groups.group_records import (
    GroupMetadataMember,
    GroupMetadataValue,
    group_record,
    group_tombstone,
    read_group_key,
    read_group_value,
)
from tidelog.core.wire.codec import MalformedMessage, encode

VALUE = GroupMetadataValue(
    protocol_type="consumer",
    generation=7,
    protocol="range",
    leader="m",
    current_state_timestamp=1_700_000_000_000,
    members=[
        GroupMetadataMember(
            member_id="m",
            group_instance_id="one",
            client_id="c",
            client_host="/127.0.0.1",
            rebalance_timeout=60_000,
            session_timeout=10_000,
            subscription=b"s",
            assignment=b"a",
        )
    ],
)


def test_key_and_value_begin_with_kafkas_versions() -> None:
    record = group_record("group", VALUE)
    assert record.key == b"\x00\x02" + b"\x00\x05group"
    assert record.value is not None
    assert record.value[:2] == b"\x00\x03"
    assert record.value[2:12] == b"\x00\x08consumer"


def test_what_is_written_is_read_again() -> None:
    record = group_record("group", VALUE)
    assert record.value is not None
    assert read_group_key(record.key) == "group"
    assert read_group_value(record.value) == VALUE


def test_a_tombstone_has_the_same_key() -> None:
    assert group_tombstone("group").key == group_record("group", VALUE).key
    assert group_tombstone("group").value is None


@pytest.mark.parametrize("version", GroupMetadataValue.versions)
def test_every_version_that_kafka_has_written_is_read(version: int) -> None:
    content = version.to_bytes(2, "big") + encode(VALUE, version)
    read = read_group_value(content)
    assert (read.generation, read.members[0].assignment) == (7, b"a")


@pytest.mark.parametrize("content", [b"", b"\x00", b"\x00\x05", b"\xff\xff", b"\x00\x03\x00"])
def test_what_is_no_value_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_group_value(content)


@pytest.mark.parametrize("content", [b"", b"\x00\x01\x00\x01g", b"\x00\x02\x00\x05g"])
def test_what_is_no_key_of_a_group_is_malformed(content: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_group_key(content)
