"""When offsets expire, and when a group that has none left goes."""

from __future__ import annotations

from random import Random

import pytest

from tests.unit.core.groups.given_consumers import KnownTopics
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.classic_group import ClassicGroup, ClassicState
from tidelog.core.groups.group_records import read_group_key
from tidelog.core.groups.group_settings import ConsumerGroupSettings, GroupSettings
from tidelog.core.groups.group_shard import EXPIRY_SLICE_OFFSETS, GroupShard, OffsetSettings
from tidelog.core.groups.offset_expiry import expiry_rule
from tidelog.core.groups.offset_records import (
    CommittedOffset,
    OffsetKey,
    offset_record,
    read_offset_key,
)

RETENTION_MS = 1_000
CHECK_MS = 100
WALL_MS = 10_000


def group(
    state: ClassicState,
    *,
    protocol_type: str | None = "consumer",
    topics: frozenset[str] | None = None,
    empty_since_ms: int | None = None,
) -> ClassicGroup:
    made = ClassicGroup("g", state_timestamp_ms=empty_since_ms)
    made.state, made.protocol_type, made.subscribed_topics = state, protocol_type, topics
    return made


OLD = CommittedOffset(offset=1, commit_wall_ms=WALL_MS - RETENTION_MS)
FRESH = CommittedOffset(offset=1, commit_wall_ms=WALL_MS - RETENTION_MS + 1)
EMPTY, STABLE = ClassicState.EMPTY, ClassicState.STABLE
NO_TOPICS: frozenset[str] = frozenset()


@pytest.mark.parametrize(
    ("of", "committed", "is_expired"),
    [
        # A simple group: by the commit.
        (group(EMPTY, protocol_type=None), OLD, True),
        (group(EMPTY, protocol_type=None), FRESH, False),
        # An empty group: since when it is empty, however old the commit.
        (group(EMPTY, topics=NO_TOPICS, empty_since_ms=WALL_MS - 1), OLD, False),
        (group(EMPTY, topics=NO_TOPICS, empty_since_ms=WALL_MS - RETENTION_MS), FRESH, True),
        # ... or, in a log of an old format, by the commit.
        (group(EMPTY, topics=NO_TOPICS), OLD, True),
        # A stable group keeps what it reads, and forgets what it left.
        (group(STABLE, topics=frozenset({"t"})), OLD, False),
        (group(STABLE, topics=frozenset({"u"})), OLD, True),
        (group(STABLE, topics=frozenset({"u"})), FRESH, False),
    ],
)
def test_is_expired(of: ClassicGroup, committed: CommittedOffset, is_expired: bool) -> None:
    rule = expiry_rule(of, wall_ms=WALL_MS, retention_ms=RETENTION_MS)
    assert rule is not None
    assert rule("t", committed) is is_expired


@pytest.mark.parametrize(
    "of",
    [
        group(ClassicState.PREPARING_REBALANCE, topics=NO_TOPICS),
        group(ClassicState.COMPLETING_REBALANCE, topics=NO_TOPICS),
        group(STABLE),  # nobody knows what it reads
        group(STABLE, protocol_type="connect", topics=NO_TOPICS),
    ],
)
def test_a_group_in_use_keeps_everything(of: ClassicGroup) -> None:
    assert expiry_rule(of, wall_ms=WALL_MS, retention_ms=RETENTION_MS) is None


@pytest.mark.parametrize(("expire_wall_ms", "is_expired"), [(WALL_MS, True), (WALL_MS + 1, False)])
def test_a_retention_of_its_own_counts_instead(expire_wall_ms: int, is_expired: bool) -> None:
    """Of a client of long ago."""
    rule = expiry_rule(group(EMPTY, protocol_type=None), wall_ms=WALL_MS, retention_ms=10**9)
    assert rule is not None
    committed = CommittedOffset(offset=1, commit_wall_ms=0, expire_wall_ms=expire_wall_ms)
    assert rule("t", committed) is is_expired


# In a shard


class Shard:
    """A shard whose records are applied at once."""

    def __init__(self) -> None:
        self.shard = GroupShard(
            settings=GroupSettings(),
            consumer_settings=lambda _group_id: ConsumerGroupSettings(),
            topics=KnownTopics(),
            offset_settings=OffsetSettings(
                retention_ms=RETENTION_MS, retention_check_interval_ms=CHECK_MS
            ),
            random=Random(1),
            wall_ms=lambda now_ms: now_ms,
        )
        self.count = 0

    def apply(self, *records: CoordinatorRecord) -> None:
        for record in records:
            self.shard.apply(record, offset=self.count, timestamp_ms=0)
            self.count += 1
        self.shard.check()

    def commit(self, group_id: str, partition: int = 0, *, wall_ms: int = 0) -> None:
        key = OffsetKey(group_id, "t", partition)
        self.apply(offset_record(key, CommittedOffset(offset=1, commit_wall_ms=wall_ms)))

    def on_timer(self, now_ms: int) -> list[CoordinatorRecord]:
        outcome = self.shard.on_timer(now_ms)
        self.apply(*outcome.records)
        return outcome.records


def test_offsets_and_their_group_expire_together() -> None:
    bench = Shard()
    bench.commit("g")
    bench.shard.on_loaded(0)
    assert bench.shard.next_deadline_ms() == CHECK_MS

    assert bench.on_timer(CHECK_MS) == []
    offset, end = bench.on_timer(RETENTION_MS)

    assert read_offset_key(offset.key) == OffsetKey("g", "t", 0)
    assert (read_group_key(end.key), end.value) == ("g", None)
    assert "g" not in bench.shard.classic
    assert bench.shard.next_deadline_ms() == RETENTION_MS + CHECK_MS


def test_a_group_that_keeps_an_offset_stays() -> None:
    bench = Shard()
    bench.commit("g", 0)
    bench.commit("g", 1, wall_ms=500)
    bench.shard.on_loaded(0)

    (record,) = bench.on_timer(RETENTION_MS)

    assert read_offset_key(record.key).partition == 0
    assert "g" in bench.shard.classic


def test_a_group_with_an_open_transaction_stays() -> None:
    bench = Shard()
    key = OffsetKey("g", "t", 0)
    record = offset_record(key, CommittedOffset(offset=1, commit_wall_ms=0))
    bench.shard.apply_transactional(record, producer_id=1, offset=0, timestamp_ms=0)
    bench.shard.on_loaded(0)
    assert bench.on_timer(RETENTION_MS) == []
    assert "g" in bench.shard.classic


def test_expiry_works_in_slices() -> None:
    """No turn looks at more than its share; every group is looked at once per round."""
    bench = Shard()
    groups = 2 * EXPIRY_SLICE_OFFSETS // 10
    for number in range(groups):
        for partition in range(9):
            bench.commit(f"g{number}", partition)
    bench.shard.on_loaded(0)

    now_ms, expired, turns = RETENTION_MS, 0, 0
    while expired < groups * 10:
        records = bench.on_timer(now_ms)
        assert len(records) <= EXPIRY_SLICE_OFFSETS + 10
        expired += len(records)
        turns += 1
        deadline_ms = bench.shard.next_deadline_ms()
        assert deadline_ms is not None
        now_ms = deadline_ms
    assert turns == 2


def test_unknown_kinds_of_records_are_left_alone() -> None:
    """A log may hold what a later version wrote."""
    bench = Shard()
    bench.apply(CoordinatorRecord(b"\0\x63rest", b"\0\0"))
