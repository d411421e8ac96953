"""Committed offsets: only records change them, and transactions decide about their own."""

from __future__ import annotations

import pytest

from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.committed_offsets import CommittedOffsets
from tidelog.core.groups.offset_records import (
    CommittedOffset,
    OffsetKey,
    offset_record,
    offset_tombstone,
    read_offset_key,
)

KEY = OffsetKey("g", "t", 0)
PRODUCER = 7


def commit(key: OffsetKey, offset: int, topic_id: bytes = bytes(16)) -> CoordinatorRecord:
    return offset_record(key, CommittedOffset(offset=offset, commit_wall_ms=1, topic_id=topic_id))


def keys(records: list[CoordinatorRecord]) -> list[OffsetKey]:
    assert all(record.value is None for record in records), "tombstones only"
    return [read_offset_key(record.key) for record in records]


def value(offsets: CommittedOffsets, key: OffsetKey = KEY) -> int | None:
    offsets.check()
    committed = offsets.get(key)
    return None if committed is None else committed.offset


def test_the_newest_record_counts_and_a_tombstone_ends_it() -> None:
    offsets = CommittedOffsets()
    offsets.apply(commit(KEY, 5), offset=0)
    offsets.apply(commit(KEY, 3), offset=1)
    assert value(offsets) == 3

    offsets.apply(offset_tombstone(KEY), offset=2)

    assert value(offsets) is None
    assert "g" not in offsets
    offsets.apply(offset_tombstone(KEY), offset=3)  # twice does no harm
    offsets.check()


@pytest.mark.parametrize(("is_commit", "expected"), [(True, 9), (False, 5)])
def test_a_transaction_decides_about_its_offsets(is_commit: bool, expected: int) -> None:
    offsets = CommittedOffsets()
    offsets.apply(commit(KEY, 5), offset=0)
    offsets.apply_transactional(commit(KEY, 9), producer_id=PRODUCER, offset=1)
    assert value(offsets) == 5
    assert offsets.is_unstable(KEY)

    offsets.apply_marker(producer_id=PRODUCER, is_commit=is_commit)

    assert value(offsets) == expected
    assert not offsets.is_unstable(KEY)


def test_a_plain_commit_during_a_transaction_is_newer_than_it() -> None:
    """The order of the records decides, not that of the ends."""
    offsets = CommittedOffsets()
    offsets.apply_transactional(commit(KEY, 9), producer_id=PRODUCER, offset=1)
    offsets.apply(commit(KEY, 5), offset=2)
    offsets.apply_marker(producer_id=PRODUCER, is_commit=True)
    assert value(offsets) == 5


def test_a_deleted_offset_is_not_brought_back_by_a_transaction() -> None:
    offsets = CommittedOffsets()
    offsets.apply_transactional(commit(KEY, 9), producer_id=PRODUCER, offset=1)
    offsets.apply(offset_tombstone(KEY), offset=2)
    offsets.apply_marker(producer_id=PRODUCER, is_commit=True)
    assert value(offsets) is None


def test_a_marker_of_a_producer_without_offsets_changes_nothing() -> None:
    offsets = CommittedOffsets()
    offsets.apply_marker(producer_id=PRODUCER, is_commit=True)
    offsets.check()


def test_a_group_is_deleted_with_what_is_pending() -> None:
    offsets = CommittedOffsets()
    other = OffsetKey("h", "t", 0)
    pending = OffsetKey("g", "u", 1)
    for key in (KEY, other):
        offsets.apply(commit(key, 1), offset=0)
    offsets.apply_transactional(commit(pending, 9), producer_id=PRODUCER, offset=1)

    records = offsets.delete_group("g")
    assert keys(records) == [KEY, pending]
    for record in records:
        offsets.apply(record, offset=3)

    assert "g" not in offsets
    assert value(offsets, other) == 1


def test_a_deleted_topic_takes_its_offsets_with_it() -> None:
    """In every group; but an offset of a newer topic of that name stays."""
    offsets = CommittedOffsets()
    deleted, newer = b"\1" * 16, b"\2" * 16
    offsets.apply(commit(OffsetKey("g", "t", 0), 1, deleted), offset=0)
    offsets.apply(commit(OffsetKey("g", "t", 1), 1, newer), offset=1)
    offsets.apply(commit(OffsetKey("h", "t", 0), 1), offset=2)
    offsets.apply(commit(OffsetKey("h", "u", 0), 1, deleted), offset=3)
    offsets.apply_transactional(
        commit(OffsetKey("i", "t", 0), 1, deleted), producer_id=PRODUCER, offset=4
    )

    assert keys(offsets.delete_topic("t", deleted)) == [
        OffsetKey("g", "t", 0),
        OffsetKey("h", "t", 0),
        OffsetKey("i", "t", 0),
    ]


def test_what_a_transaction_may_change_does_not_expire() -> None:
    offsets = CommittedOffsets()
    other = OffsetKey("g", "t", 1)
    offsets.apply(commit(KEY, 1), offset=0)
    offsets.apply(commit(other, 1), offset=1)
    offsets.apply_transactional(commit(other, 2), producer_id=PRODUCER, offset=2)
    assert keys(offsets.expired("g", lambda _topic, _committed: True)) == [KEY]
