"""The runtime of coordinators, with a toy shard: who is answered when, and what survives."""

from __future__ import annotations

from tests.unit.core.coordinator.toy import (
    COMMIT_TIMEOUT_MS,
    Bench,
    CounterShard,
    MemoryLog,
    count,
    filled_log,
)
from tidelog.core.coordinator.events import CoordinatorDropped, CoordinatorLoaded
from tidelog.core.coordinator.hosted_shard import HELD_MAX, HOLD_MS_MAX
from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.coordinator.runtime import SLICE_RECORDS
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.control_records import end_txn_marker
from tidelog.core.wire.records import NewRecord, build


def test_an_answer_waits_for_the_high_watermark() -> None:
    """Applied at append, answered at commit."""
    bench, log = Bench(), MemoryLog()
    bench.lead(log)

    bench.submit("a", count(b"n"))
    assert bench.shards[0].counts == {b"n": 1}
    assert bench.answers == []

    log.commit()
    bench.runtime.settle()
    assert bench.answers == [("a", (b"n", 1))]


def test_a_read_waits_for_what_it_saw() -> None:
    """A read that rests on an uncommitted record must not be answered before it."""
    bench, log = Bench(), MemoryLog()
    bench.lead(log)
    bench.submit("write", count(b"n"))
    bench.submit("read")
    assert bench.answers == []

    log.commit()
    bench.runtime.settle()

    assert bench.answers == [("write", (b"n", 1)), ("read", {b"n": 1})]


def test_a_read_of_committed_state_is_answered_at_once() -> None:
    bench, log = Bench(), MemoryLog()
    bench.lead(log)

    bench.submit("read")

    assert bench.answers == [("read", {})]


def test_answers_follow_the_high_watermark_step_by_step() -> None:
    bench, log = Bench(), MemoryLog()
    bench.lead(log)
    for name in "abc":
        bench.submit(name, count(b"n"))

    log.high_watermark = 2
    bench.runtime.settle()

    assert [who for who, _ in bench.answers] == ["a", "b"]


def test_records_are_applied_with_their_offsets_and_times() -> None:
    bench, log = Bench(), MemoryLog()
    bench.lead(log)
    bench.now_ms = 7
    bench.submit("a", count(b"n"))
    bench.submit("b", count(b"m"))

    assert bench.shards[0].applied == [(b"n", 0, 1_000_007), (b"m", 1, 1_000_007)]


def test_the_next_leader_replays_everything() -> None:
    """Both shards end the same: apply at append and apply at replay are one function."""
    log = filled_log(5)
    bench = Bench()
    bench.lead(log)
    bench.pass_time(1)

    assert bench.shards[0].counts == {b"name %d" % number: 1 for number in range(5)}
    assert bench.shards[0].applied == [(b"name %d" % each, each, 1_000_000) for each in range(5)]
    assert bench.trace.of(CoordinatorLoaded) == [
        CoordinatorLoaded(partition="__counters-0", leader_epoch=1, end_offset=5, records=5)
    ]


def test_it_loads_in_slices_and_holds_requests_meanwhile() -> None:
    """No turn applies more than its share, in all partitions together."""
    bench = Bench()
    logs = [filled_log(SLICE_RECORDS), filled_log(SLICE_RECORDS)]
    bench.lead(logs[0], 0)
    bench.lead(logs[1], 1)
    bench.submit("held", index=1)

    seen = 0
    while bench.shards[1].loaded_ms is None:
        bench.pass_time(1)
        applied = sum(len(shard.applied) for shard in bench.shards)
        assert applied - seen <= SLICE_RECORDS
        seen = applied

    assert seen == 2 * SLICE_RECORDS
    assert bench.shards[0].loaded_ms is not None
    assert bench.shards[0].loaded_ms < (bench.shards[1].loaded_ms or 0)
    assert [who for who, _ in bench.answers] == ["held"]
    assert not bench.errors()


def test_a_slice_ends_within_a_batch() -> None:
    """One commit may hold thousands of records: a batch is no unit of work."""
    log = MemoryLog()
    records = [NewRecord(key=b"%d" % each, value=b"x") for each in range(SLICE_RECORDS + 1)]
    log.append(build(records), leader_epoch=0, wall_ms=0)
    bench = Bench()
    bench.lead(log)

    bench.pass_time(1)
    assert len(bench.shards[0].applied) == SLICE_RECORDS
    bench.pass_time(1)
    assert len(bench.shards[0].applied) == SLICE_RECORDS + 1
    assert bench.shards[0].loaded_ms == 2


def test_a_request_is_held_for_a_bounded_time() -> None:
    bench = Bench()
    records = [NewRecord(key=b"%d" % each, value=b"x") for each in range(SLICE_RECORDS)]
    log = MemoryLog()
    for _ in range(HOLD_MS_MAX + 1):
        log.append(build(records), leader_epoch=0, wall_ms=0)
    bench.lead(log)

    bench.submit("held")
    bench.pass_time(HOLD_MS_MAX - 1)
    assert bench.answers == []
    bench.pass_time(1)

    assert bench.answers == [("held", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]


def test_too_many_held_requests_are_refused_at_once() -> None:
    bench = Bench()
    bench.lead(filled_log(1))
    for number in range(HELD_MAX):
        bench.runtime.submit(0, count(b"n"), ReplyTo(number), 0)
    assert bench.answers == []

    bench.runtime.submit(0, count(b"n"), ReplyTo("one more"), 0)

    assert bench.answers == [("one more", ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)]


def test_a_partition_that_is_not_led_here_is_refused() -> None:
    bench = Bench()
    bench.submit("a")
    assert bench.answers == [("a", ErrorCode.NOT_COORDINATOR)]


def test_lost_leadership_drops_everything_and_answers_everybody() -> None:
    """Those who wait for the commit, those held, and those whom only the shard remembers."""
    bench, log = Bench(), MemoryLog()
    bench.lead(log)
    bench.submit("parked", count(b"n"))

    def wait(shard: CounterShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        shard.parked_reply = reply_to
        return Outcome()

    bench.runtime.submit(0, wait, ReplyTo("in the shard"), 0)
    other = filled_log(1)
    bench.lead(other, 1)
    bench.submit("held", count(b"n"), index=1)

    bench.runtime.resign(0, "another leader")
    bench.runtime.resign(1, "another leader")

    assert bench.answers == [
        ("parked", ErrorCode.NOT_COORDINATOR),
        ("in the shard", ErrorCode.NOT_COORDINATOR),
        ("held", ErrorCode.NOT_COORDINATOR),
    ]
    assert not bench.runtime.hosted
    bench.pass_time(HOLD_MS_MAX + 1)  # no alarm of the dropped ones does anything
    assert len(bench.answers) == 3


def test_a_leadership_lost_unnoticed_answers_nothing_good() -> None:
    """The log knows first: what would be covered now may be another leader's records."""
    bench, log = Bench(), MemoryLog()
    bench.lead(log)
    bench.submit("a", count(b"n"))
    log.leader_epoch += 1
    log.commit()

    bench.runtime.settle()

    assert bench.answers == [("a", ErrorCode.NOT_COORDINATOR)]
    assert [each.reason for each in bench.trace.of(CoordinatorDropped)] == [
        "the leadership is lost"
    ]


def test_a_failed_append_drops_the_shard() -> None:
    """Nothing was applied, so there is nothing to take back."""
    bench, log = Bench(), MemoryLog()
    bench.lead(log)
    bench.submit("a", count(b"n"))
    log.is_broken = True

    bench.submit("b", count(b"n"))

    assert bench.shards[0].counts == {b"n": 1}
    assert bench.errors() == [("a", ErrorCode.NOT_COORDINATOR), ("b", ErrorCode.NOT_COORDINATOR)]
    bench.submit("c")
    assert bench.answers[-1] == ("c", ErrorCode.NOT_COORDINATOR)


def test_a_new_leader_epoch_loads_anew() -> None:
    bench, log = Bench(), MemoryLog()
    bench.lead(log)
    bench.submit("a", count(b"n"))
    log.leader_epoch += 1
    bench.lead(log)
    bench.lead(log)  # the same leader epoch again changes nothing
    bench.pass_time(2)

    assert len(bench.shards) == 2
    assert bench.shards[1].counts == {b"n": 1}
    assert bench.answers == [("a", ErrorCode.NOT_COORDINATOR)]


def test_an_unreadable_log_has_no_coordinator() -> None:
    bench, log = Bench(), filled_log(2)
    log.is_broken = True
    bench.lead(log)
    bench.submit("held")
    bench.pass_time(1)

    assert bench.answers == [("held", ErrorCode.NOT_COORDINATOR)]
    assert bench.trace.of(CoordinatorDropped)[0].reason == "unreadable: the disk is gone"


def test_a_damaged_batch_has_no_coordinator() -> None:
    bench, log = Bench(), filled_log(2)
    log.content[-1] ^= 1
    bench.lead(log)
    bench.pass_time(1)

    assert "wrong checksum at offset 1" in bench.trace.of(CoordinatorDropped)[0].reason


def test_an_answer_does_not_wait_for_ever() -> None:
    """Too few replicas: the caller tries again; what was decided may still be committed."""
    bench, log = Bench(), MemoryLog()
    bench.lead(log)
    bench.submit("a", count(b"n"))
    bench.pass_time(COMMIT_TIMEOUT_MS - 1)
    assert bench.answers == []

    bench.pass_time(1)
    assert bench.answers == [("a", ErrorCode.COORDINATOR_NOT_AVAILABLE)]

    log.commit()
    bench.submit("b")
    assert bench.answers[1:] == [("b", {b"n": 1})]


def test_what_does_not_fit_into_a_batch_is_refused_and_not_applied() -> None:
    bench, log = Bench(), MemoryLog()
    bench.lead(log)

    bench.submit("a", count(b"n", times=log.batch_bytes_max))

    assert bench.answers == [("a", ErrorCode.MESSAGE_TOO_LARGE)]
    assert bench.shards[0].counts == {}
    assert log.log_end_offset == 0


def test_what_does_not_fit_may_be_decided_otherwise() -> None:
    bench, log = Bench(), MemoryLog()
    bench.lead(log)

    def large(shard: CounterShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        record = CoordinatorRecord(b"n", bytes(log.batch_bytes_max))
        instead = Outcome(replies=[(reply_to, "instead")])
        return Outcome([record], [(reply_to, "large")], if_too_large=lambda: instead)

    bench.runtime.submit(0, large, ReplyTo("a"), 0)
    bench.runtime.settle()

    assert bench.answers == [("a", "instead")]


def test_deadlines_ring_and_may_answer_earlier_callers() -> None:
    bench, log = Bench(), MemoryLog()
    bench.lead(log)

    def wait(shard: CounterShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        shard.parked_reply, shard.deadline_ms = reply_to, now_ms + 10
        return Outcome()

    bench.runtime.submit(0, wait, ReplyTo("a"), 0)
    bench.pass_time(9)
    assert log.log_end_offset == 0
    bench.pass_time(1)
    assert log.log_end_offset == 1
    assert bench.answers == []
    log.commit()
    bench.runtime.settle()

    assert bench.answers == [("a", "late")]


def test_a_duty_waits_for_the_load() -> None:
    """An event of the cluster reaches every partition, also one that is loading."""
    bench, log = Bench(), MemoryLog()
    bench.lead(log, 0)
    bench.lead(filled_log(1), 1)

    def forget(shard: CounterShard, now_ms: int) -> Outcome:
        return Outcome([CoordinatorRecord(key, None) for key in shard.counts])

    bench.submit("a", count(b"n"), index=0)
    bench.runtime.perform_everywhere(forget, 0)
    assert bench.shards[0].counts == {}
    bench.pass_time(1)

    assert bench.shards[1].counts == {}


def test_transactional_records_and_markers_are_replayed_as_such() -> None:
    log = MemoryLog()
    pending = build([NewRecord(key=b"n", value=b"x")], producer_id=7, transactional=True)
    log.append(pending, leader_epoch=0, wall_ms=0)
    marker = end_txn_marker(commit=True, coordinator_epoch=0)
    log.append(
        build([marker], producer_id=7, transactional=True, control=True), leader_epoch=0, wall_ms=0
    )
    bench = Bench()
    bench.lead(log)
    bench.pass_time(1)

    assert bench.shards[0].pending == [(7, b"n")]
    assert bench.shards[0].markers == [(7, True)]
    assert bench.shards[0].counts == {}
