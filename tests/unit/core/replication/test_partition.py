"""A partition as leader and follower: its fences move one way, and everyone hears of it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.golden.memory_disk import MemoryDisk
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicId, TopicPartition
from tidelog.core.model.trace import ListTrace, NullTrace
from tidelog.core.replication.events import BecameFollower, BecameLeader, IsrCommitted
from tidelog.core.replication.partition import Assignment, Partition
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.log import Log
from tidelog.core.wire.records import NewRecord, build

LAG_MS = 100


class Cluster:
    def may_join(self, broker_id: int, broker_epoch: int | None) -> bool:
        return broker_epoch == broker_id

    def is_alive(self, broker_id: int) -> bool:
        return True


class Parked:
    """A produce request that waits."""

    is_done = False

    def __init__(self) -> None:
        self.heard: list[object] = []

    def on_covered(self) -> None:
        self.heard.append("covered")

    def on_partition_gone(self, partition: object, code: ErrorCode) -> None:
        self.heard.append(code)


class Looking:
    """A fetch that waits."""

    def __init__(self) -> None:
        self.looks = 0

    def on_partition_changed(self) -> None:
        self.looks += 1

    def on_isr_changed(self) -> None:
        raise AssertionError("nobody leaves the in-sync replicas here")


def partition(*, waits_for_sync: bool = False, trace: ListTrace | None = None) -> Partition:
    name = TopicPartition("orders", 0)
    disk = MemoryDisk()
    log = Log.open(
        disk=disk,
        directory="data/orders-0",
        topic_partition=name,
        topic_id=TopicId(bytes(16)),
        config=LogConfig(),
        trace=NullTrace(),
        wall_ms=0,
        clean=True,
    )
    return Partition(
        topic_partition=name,
        topic_id=TopicId(bytes(16)),
        log=log,
        node_id=1,
        waits_for_sync=waits_for_sync,
        isr_min=2,
        lag_ms_max=LAG_MS,
        cluster=Cluster(),
        trace=trace or ListTrace(),
    )


def assigned(
    leader: int | None, leader_epoch: int, *isr: int, partition_epoch: int | None = None
) -> Assignment:
    newest = leader_epoch if partition_epoch is None else partition_epoch
    return Assignment(leader, leader_epoch, newest, (1, 2, 3), isr)


def append(held: Partition) -> None:
    batch = build([NewRecord(b"v", timestamp_ms=1)])
    appended = held.log.append_as_leader(
        memoryview(batch), leader_epoch=held.leader_epoch, wall_ms=1
    )
    assert appended.error == ErrorCode.NONE


def fetch(held: Partition, broker_id: int, offset: int, *, now_ms: int = 0) -> None:
    held.on_follower_fetch(
        broker_id,
        fetch_offset=offset,
        log_start_offset=0,
        broker_epoch=broker_id,
        session=None,
        now_ms=now_ms,
    )


def test_a_leader_releases_what_waits_when_the_set_has_it() -> None:
    held, parked, consumer, follower = partition(), Parked(), Looking(), Looking()
    held.lead(assigned(1, 0, 1, 2), now_ms=0)
    held.watchers[consumer] = None
    held.follower_watchers[follower] = None
    append(held)
    held.purgatory.park(parked, required_end_offset=1)
    held.settle(0)
    assert (consumer.looks, follower.looks, parked.heard) == (0, 1, [])

    fetch(held, 2, 1)
    held.settle(0)
    assert (consumer.looks, follower.looks, parked.heard) == (1, 1, ["covered"])


def test_a_leader_that_stays_one_in_a_new_leader_epoch_goes_on_with_what_waits() -> None:
    held, parked = partition(), Parked()
    held.lead(assigned(1, 0, 1, 2), now_ms=0)
    append(held)
    held.purgatory.park(parked, required_end_offset=1)
    held.lead(assigned(1, 1, 1, 2), now_ms=0)
    assert parked.heard == []
    fetch(held, 2, 1)
    held.settle(0)
    assert parked.heard == ["covered"]


def test_what_a_leader_knew_of_its_followers_ends_with_its_leader_epoch() -> None:
    held = partition()
    held.lead(assigned(1, 0, 1, 2), now_ms=0)
    append(held)
    fetch(held, 2, 1)
    held.lead(assigned(1, 2, 1, 2), now_ms=0)
    held.settle(0)
    assert held.high_watermark == 0


def test_whoever_waits_hears_that_another_leads() -> None:
    held, parked = partition(), Parked()
    held.lead(assigned(1, 0, 1, 2), now_ms=0)
    append(held)
    held.purgatory.park(parked, required_end_offset=1)
    assert held.follow(assigned(2, 1, 2, 1))
    assert parked.heard == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert not held.is_leader


def test_old_metadata_is_passed_over() -> None:
    held = partition()
    held.lead(assigned(1, 3, 1, 2, partition_epoch=7), now_ms=0)
    assert not held.follow(assigned(2, 2, 2, partition_epoch=6))
    held.lead(assigned(1, 3, 1, partition_epoch=6), now_ms=0)
    assert (held.leader_id, held.isr, held.partition_epoch) == (1, (1, 2), 7)


def test_the_trace_tells_roles_and_sets() -> None:
    trace = ListTrace()
    held = partition(trace=trace)
    held.follow(assigned(2, 0, 1, 2))
    held.lead(assigned(1, 1, 1, 2), now_ms=0)
    held.lead(assigned(1, 1, 1, partition_epoch=2), now_ms=0)
    assert [type(event) for event in trace.events] == [BecameFollower, BecameLeader, IsrCommitted]


def test_a_follower_takes_over_the_high_watermark_as_far_as_it_has_records() -> None:
    held = partition()
    held.lead(assigned(1, 0, 1, 2), now_ms=0)
    append(held)
    held.follow(assigned(2, 1, 2, 1))
    assert held.follow_high_watermark(99)
    assert held.high_watermark == 1
    assert not held.follow_high_watermark(0)


def test_the_minimum_counts_no_more_replicas_than_there_are() -> None:
    held = partition()
    held.lead(Assignment(1, 0, 0, (1,), (1,)), now_ms=0)
    assert (held.minimum, held.is_under_minimum) == (1, False)
    held.lead(Assignment(1, 0, 1, (1, 2, 3), (1,)), now_ms=0)
    assert (held.minimum, held.is_under_minimum) == (2, True)
    held.require(1)
    assert not held.is_under_minimum


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["append", "fetch", "fetch", "isr", "elect", "time"]),
        st.sampled_from([2, 3]),
        st.integers(0, 3),
    ),
    max_size=50,
)


@pytest.mark.scenario("D3-O3")
@given(STEPS)
def test_a_leaders_high_watermark_only_grows_and_never_beyond_what_the_set_has(
    steps: list[tuple[str, int, int]],
) -> None:
    held = partition()
    held.lead(assigned(1, 0, 1, 2, 3), now_ms=0)
    ends = {2: 0, 3: 0}
    now_ms = 0
    for step, who, number in steps:
        before = held.high_watermark
        if step == "append":
            append(held)
        elif step == "fetch":
            ends[who] = min(held.log.log_end_offset, ends[who] + number)
            fetch(held, who, ends[who], now_ms=now_ms)
        elif step == "isr":
            isr = ((1,), (1, who), (1, 2, 3), (1, who))[number]
            held.on_isr_committed(
                isr, leader_epoch=held.leader_epoch, partition_epoch=held.partition_epoch + 1
            )
        elif step == "elect":
            held.lead(
                assigned(1, held.leader_epoch + 1, *held.isr, partition_epoch=1_000), now_ms=now_ms
            )
        else:
            now_ms += number * LAG_MS
        held.settle(now_ms)
        held.check()
        assert held.high_watermark >= before
        if held.high_watermark > before:
            assert held.leadership is not None
            assert len(held.isr) >= 2
            for member in held.leadership.in_sync.maximal - {1}:
                assert ends[member] >= held.high_watermark
