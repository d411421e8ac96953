"""A leader's term: what a majority has made durable, and stepping down when nobody listens."""

from __future__ import annotations

import pytest

from tests.unit.core.quorum.given import TIMING, MemoryLog, follower, leader
from tidelog.core.quorum.leader_term import OBSERVER_IDLE_MS_MAX, LeaderTerm
from tidelog.core.quorum.roles import Role
from tidelog.core.quorum.values import BeginEpoch


def test_a_record_is_committed_when_a_majority_has_synced_it() -> None:
    log = MemoryLog()
    machine = leader(log)

    assert machine.on_fetch(2, 1, 5).high_watermark is None, "ours is not durable yet"
    log.sync()
    assert machine.on_synced(6).high_watermark == 1
    assert machine.on_fetch(3, 1, 7).high_watermark is None, "it has not moved"


def test_records_of_earlier_epochs_wait_for_one_of_this_epoch() -> None:
    log = MemoryLog((1, "a"), (1, "b"))
    machine = leader(log)
    log.sync()
    machine.on_synced(1)

    assert machine.on_fetch(2, 2, 5).high_watermark is None
    assert machine.high_watermark is None
    assert machine.on_fetch(2, 3, 6).high_watermark == 3


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ((9, 9, 0, 0, 0), None),
        ((9, 5, 4, 0, 0), 4),
        ((9, 5, 4, 3, 3), 4),
        ((3, 9, 9, 9, 3), 9),
        ((2, 9, 9, 2, 2), None),
    ],
)
def test_the_high_watermark_is_the_median_beyond_the_start_of_the_epoch(
    ends: tuple[int, ...], expected: int | None
) -> None:
    term = LeaderTerm(
        node_id=1, voters=range(1, 6), epoch_start_offset=2, granted_by=(1,), timing=TIMING,
        now_ms=0,
    )  # fmt: skip
    term.on_own_end(ends[0])
    for voter, end_offset in enumerate(ends[1:], start=2):
        term.on_fetch(voter, end_offset, leader_end_offset=9, now_ms=1)

    assert term.high_watermark == expected


def test_the_high_watermark_never_goes_back() -> None:
    log = MemoryLog((1, "a"))
    machine = leader(log)
    log.sync()
    machine.on_synced(1)
    machine.on_fetch(2, 2, 2)
    assert machine.high_watermark == 2

    assert machine.on_fetch(2, 1, 3).high_watermark is None
    assert machine.high_watermark == 2


def test_observers_are_known_but_do_not_count() -> None:
    log = MemoryLog()
    machine = leader(log)
    log.sync()
    machine.on_synced(1)

    for observer in (7, 8, 9):
        assert machine.on_fetch(observer, 1, 2).high_watermark is None

    assert machine.leadership is not None
    assert sorted(machine.leadership.observers) == [7, 8, 9]
    machine.leadership.forget_idle_observers(2 + OBSERVER_IDLE_MS_MAX)
    assert not machine.leadership.observers


def test_a_leader_without_a_majority_of_fetches_resigns() -> None:
    machine = leader(MemoryLog(), voters=(1, 2, 3, 4, 5))
    machine.on_fetch(2, 1, 1_000)

    machine.on_tick(TIMING.check_quorum_ms - 1)
    roles = [machine.role]
    ready = machine.on_tick(TIMING.check_quorum_ms)
    roles.append(machine.role)

    assert roles == [Role.LEADER, Role.RESIGNED]
    assert ready.store is None, "resigning is no news for the disk"
    machine.check()


def test_fetches_of_a_majority_keep_a_leader() -> None:
    machine = leader(MemoryLog())
    for now_ms in range(0, 20_000, 500):
        machine.on_tick(now_ms)
        machine.on_fetch(3, 1, now_ms)
    assert machine.role is Role.LEADER

    assert machine.deadline_ms is not None


def test_voters_hear_who_leads_until_they_fetch() -> None:
    machine = leader(MemoryLog())
    begin = BeginEpoch(leader_id=1, quorum_epoch=1)
    assert machine.request_for(2, 0) == machine.request_for(3, 0) == begin

    machine.on_begin_answer(2, leader_id=1, quorum_epoch=1, now_ms=10)
    machine.on_fetch(3, 1, 20)

    assert machine.request_for(2, 20) is None
    assert machine.request_for(3, 20) is None
    assert machine.deadline_ms == 10 + TIMING.begin_again_ms
    assert machine.request_for(2, 10 + TIMING.begin_again_ms) == begin


def test_a_follower_takes_the_high_watermark_only_as_far_as_its_log_goes() -> None:
    log = MemoryLog((1, "a"), (1, "b"))
    machine = follower(2, log=log)

    assert machine.on_leader_high_watermark(9).high_watermark == 2
    assert machine.on_leader_high_watermark(1).high_watermark is None
    log.append(3, "c")
    assert machine.on_leader_high_watermark(9).high_watermark == 3


def test_a_follower_waits_no_longer_than_the_fetch_timeout() -> None:
    machine = follower(2, now_ms=100)

    machine.on_tick(100 + TIMING.fetch_timeout_ms - 1)
    assert machine.role is Role.FOLLOWER
    machine.on_tick(100 + TIMING.fetch_timeout_ms)

    assert (machine.role, machine.leader_id) == (Role.PROSPECTIVE, 1)
    machine.on_begin_epoch(1, 3, 3_000)
    assert machine.role is Role.FOLLOWER, "the leader is there after all"
