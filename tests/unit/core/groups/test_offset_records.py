"""Committed offsets as records: Kafka's bytes, in every version that a log may hold."""

from __future__ import annotations

import pytest

from tidelog.core.groups.offset_records import (
    CommittedOffset,
    OffsetCommitValue,
    OffsetKey,
    offset_record,
    offset_tombstone,
    read_offset_key,
    read_offset_value,
)
from tidelog.core.wire.codec import encode
from tidelog.core.wire.malformed import MalformedMessage

KEY = OffsetKey("g", "t", 3)


def test_the_bytes_are_kafkas() -> None:
    """Key type 1 and value version 4, whose topic id is a tagged field."""
    topic_id = bytes(range(16))
    record = offset_record(
        KEY,
        CommittedOffset(
            offset=5, leader_epoch=2, metadata="m", commit_wall_ms=9, topic_id=topic_id
        ),
    )
    assert record.key.hex() == "0001" + "000167" + "000174" + "00000003"
    assert record.value is not None
    assert record.value.hex() == (
        "0004" + "0000000000000005" + "00000002" + "026d" + "0000000000000009"
        + "01" + "00" + "10" + topic_id.hex()
    )  # fmt: skip


@pytest.mark.parametrize(
    "committed",
    [
        CommittedOffset(offset=5, commit_wall_ms=9, record_offset=7),
        CommittedOffset(
            offset=5, leader_epoch=2, commit_wall_ms=9, topic_id=b"\1" * 16, record_offset=7
        ),
        CommittedOffset(
            offset=5, metadata="m", commit_wall_ms=9, expire_wall_ms=20, record_offset=7
        ),
    ],
)
def test_a_record_brings_back_what_was_committed(committed: CommittedOffset) -> None:
    record = offset_record(KEY, committed)
    assert read_offset_key(record.key) == KEY
    assert record.value is not None
    assert read_offset_value(record.value, record_offset=7) == committed


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_a_value_is_read(version: int) -> None:
    value = OffsetCommitValue(offset=5, metadata="m", commit_timestamp=9)
    content = version.to_bytes(2, "big") + encode(value, version)
    found = read_offset_value(content, record_offset=0)
    assert (found.offset, found.metadata, found.commit_wall_ms) == (5, "m", 9)


def test_a_key_of_long_ago_is_read() -> None:
    key = offset_tombstone(KEY).key
    assert read_offset_key(b"\0\0" + key[2:]) == KEY


@pytest.mark.parametrize("key", [b"", b"\0", b"\0\2\0\1g", b"\0\1\0"])
def test_what_is_no_key_is_refused(key: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_offset_key(key)


@pytest.mark.parametrize("value", [b"", b"\0\x05", b"\0\4\0"])
def test_what_is_no_value_is_refused(value: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_offset_value(value, record_offset=0)
