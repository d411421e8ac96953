"""Elections: pre-vote, candidacy, the vote that is cast once, and starting again after a crash."""

from __future__ import annotations

from random import Random

import pytest

from tests.unit.core.quorum.given import (
    THREE,
    TIMING,
    MemoryLog,
    call,
    follower,
    granted,
    leader,
    quorum,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.quorum.machine import Quorum
from tidelog.core.quorum.roles import Role
from tidelog.core.quorum.values import ElectionState, LogPosition, Ready, VoteAnswer, VoteCall


def reply_of(ready: Ready) -> VoteAnswer:
    assert ready.reply is not None
    return ready.reply


def is_granted(machine: Quorum, vote_call: VoteCall, now_ms: int = 0) -> bool:
    answer = reply_of(machine.on_vote_call(vote_call, now_ms))
    machine.check()
    return answer.is_granted


def stand(machine: Quorum) -> int:
    assert machine.deadline_ms is not None
    now_ms = machine.deadline_ms
    machine.on_tick(now_ms)
    assert machine.role is Role.PROSPECTIVE
    return now_ms


def test_a_voter_alone_leads_at_once_and_stores_that_it_does() -> None:
    machine = Quorum(node_id=1, voters=(1,), log=MemoryLog(), timing=TIMING, random=Random(1))

    ready = machine.on_start(0)

    assert ready.store == ElectionState(quorum_epoch=1, leader_id=1, voted_for=1)
    assert [change.role for change in ready.changes] == [
        Role.UNATTACHED, Role.PROSPECTIVE, Role.CANDIDATE, Role.LEADER,
    ]  # fmt: skip
    assert machine.deadline_ms is None
    machine.check()


def test_a_voter_alone_leads_at_once_after_a_restart_in_the_next_epoch() -> None:
    log = MemoryLog((1, "a"))
    stored = ElectionState(quorum_epoch=1, leader_id=1, voted_for=1)

    machine = quorum(1, voters=(1,), log=log, stored=stored)

    assert (machine.role, machine.quorum_epoch) == (Role.LEADER, 2)


def test_the_way_to_the_leadership_is_pre_vote_then_a_new_epoch_then_votes() -> None:
    machine = quorum()
    now_ms = stand(machine)
    assert machine.quorum_epoch == 0
    pre = machine.request_for(2, now_ms)
    assert isinstance(pre, VoteCall) and pre.is_pre_vote

    ready = granted(machine, 3, now_ms)

    elected = ElectionState(quorum_epoch=1, leader_id=None, voted_for=1)
    assert (machine.role, ready.store) == (Role.CANDIDATE, elected)
    asked = machine.request_for(2, now_ms)
    assert isinstance(asked, VoteCall) and (asked.is_pre_vote, asked.quorum_epoch) == (False, 1)
    ready = granted(machine, 2, now_ms)
    elected = ElectionState(quorum_epoch=1, leader_id=1, voted_for=1)
    assert (machine.role, ready.store) == (Role.LEADER, elected)
    assert machine.leadership is not None
    assert machine.leadership.granted_by == (1, 2)


def test_a_refused_pre_vote_begins_no_epoch() -> None:
    machine = quorum()
    now_ms = stand(machine)

    for voter in (2, 3):
        granted(machine, voter, now_ms, is_granted=False)

    assert (machine.role, machine.quorum_epoch) == (Role.UNATTACHED, 0)
    assert machine.deadline_ms is not None and machine.deadline_ms > now_ms


def test_answers_to_the_pre_vote_do_not_count_as_votes() -> None:
    machine = quorum(voters=(1, 2, 3, 4, 5))
    now_ms = stand(machine)
    pre = machine.request_for(4, now_ms)
    assert isinstance(pre, VoteCall)
    granted(machine, 2, now_ms)
    granted(machine, 3, now_ms)
    assert machine.role is Role.CANDIDATE
    granted(machine, 2, now_ms)

    late = VoteAnswer(
        error=ErrorCode.NONE, quorum_epoch=machine.quorum_epoch, leader_id=None, is_granted=True
    )
    machine.on_vote_answer(4, pre, late, now_ms)

    assert machine.role is Role.CANDIDATE


def test_a_vote_is_cast_once_per_epoch_and_stored_before_it_is_told() -> None:
    machine = quorum(3)

    ready = machine.on_vote_call(call(1, 5), 0)

    assert reply_of(ready).is_granted
    assert ready.store == ElectionState(quorum_epoch=5, leader_id=None, voted_for=1)
    assert ready.granted is not None and ready.granted.candidate_id == 1
    assert not is_granted(machine, call(2, 5))
    assert is_granted(machine, call(1, 5)), "the same candidate may ask again"
    assert is_granted(machine, call(2, 6)), "a new epoch is a new vote"


def test_a_stored_vote_is_kept_over_a_restart() -> None:
    machine = quorum(3, stored=ElectionState(quorum_epoch=5, leader_id=None, voted_for=1))

    assert not is_granted(machine, call(2, 5))
    assert is_granted(machine, call(1, 5))


@pytest.mark.parametrize(
    ("position", "expected"),
    [
        (LogPosition(2, 9), False),  # an older epoch, however long
        (LogPosition(3, 4), False),
        (LogPosition(3, 5), True),
        (LogPosition(4, 1), True),
    ],
)
def test_votes_go_to_logs_that_are_at_least_as_up_to_date(
    position: LogPosition, expected: bool
) -> None:
    log = MemoryLog((1, "a"), (1, "b"), (3, "c"), (3, "d"), (3, "e"))
    for pre in (False, True):
        machine = quorum(3, log=log)
        assert is_granted(machine, call(1, 7, pre=pre, position=position)) is expected


def test_a_candidate_that_crashed_does_not_ask_again_in_its_epoch() -> None:
    stored = ElectionState(quorum_epoch=5, leader_id=None, voted_for=1)

    machine = quorum(1, stored=stored)

    assert machine.role is Role.UNATTACHED
    assert machine.request_for(2, 0) is None
    assert not is_granted(machine, call(2, 5)), "its vote was its own"


def test_a_repeated_call_with_a_shorter_log_gets_no_vote() -> None:
    machine = quorum(3, log=MemoryLog((1, "a"), (1, "b")))
    assert is_granted(machine, call(1, 5, position=LogPosition(1, 2)))

    assert not is_granted(machine, call(1, 5, position=LogPosition(1, 1)))


def test_a_pre_vote_is_refused_while_the_leader_is_heard() -> None:
    machine = follower(2)

    assert not is_granted(machine, call(3, 3, pre=True))
    assert (machine.role, machine.quorum_epoch) == (Role.FOLLOWER, 3)


def test_a_pre_vote_is_granted_by_a_follower_that_never_reached_its_leader() -> None:
    machine = follower(2, has_fetched=False)

    assert is_granted(machine, call(3, 3, pre=True))
    assert machine.role is Role.FOLLOWER


def test_a_pre_vote_changes_no_vote() -> None:
    machine = quorum(3)

    assert is_granted(machine, call(1, 0, pre=True))
    assert is_granted(machine, call(2, 0, pre=True))
    assert machine.voted_for is None


def test_a_leader_refuses_pre_votes_of_its_epoch() -> None:
    machine = leader(MemoryLog())

    assert not is_granted(machine, call(3, 1, pre=True, position=LogPosition(1, 1)))
    assert machine.role is Role.LEADER


def test_calls_of_the_past_are_fenced_and_told_who_leads() -> None:
    machine = follower(2)

    answer = reply_of(machine.on_vote_call(call(3, 2), 0))

    assert answer.error == ErrorCode.FENCED_LEADER_EPOCH
    assert (answer.leader_id, answer.quorum_epoch) == (1, 3)


@pytest.mark.parametrize(("newest", "pre"), [(5, False), (6, False), (6, True)])
def test_a_call_with_records_of_its_own_future_is_invalid(newest: int, pre: bool) -> None:
    machine = quorum(3)

    answer = reply_of(machine.on_vote_call(call(1, 5, pre=pre, position=LogPosition(newest, 1)), 0))

    assert answer.error == ErrorCode.INVALID_REQUEST
    assert machine.quorum_epoch == 0


def test_a_stranger_gets_no_vote() -> None:
    assert not is_granted(quorum(3), call(8, 5))


def test_a_leader_starts_again_resigned_and_tells_the_others() -> None:
    stored = ElectionState(quorum_epoch=5, leader_id=1, voted_for=1)
    machine = quorum(1, stored=stored)

    assert (machine.role, machine.quorum_epoch) == (Role.RESIGNED, 5)
    assert not is_granted(machine, call(2, 5))
    assert machine.request_for(2, 0) is not None
    machine.on_end_answer(2, leader_id=1, quorum_epoch=5, now_ms=1)
    assert machine.request_for(2, 1) is None
    assert machine.request_for(3, 1) is not None

    assert machine.deadline_ms is not None
    machine.on_tick(machine.deadline_ms)
    assert (machine.role, machine.quorum_epoch) == (Role.UNATTACHED, 6)
    assert machine.leader_id is None
    machine.check()


def test_the_log_knows_better_than_an_old_quorum_state() -> None:
    machine = quorum(2, log=MemoryLog((4, "a")), stored=ElectionState(3, None, 1))

    assert (machine.quorum_epoch, machine.voted_for) == (4, None)


def test_fresh_voters_begin_as_soon_as_a_majority_is_there_by_rank() -> None:
    begins = []
    for node_id in THREE:
        machine = quorum(node_id, now_ms=100)
        machine.on_reachable(0, 100)
        assert machine.deadline_ms is not None and machine.deadline_ms >= 1_100
        machine.on_reachable(1, 100)
        begins.append(machine.deadline_ms)

    assert begins == [100, 100 + TIMING.stagger_ms, 100 + 2 * TIMING.stagger_ms]


def test_only_the_first_election_is_hurried() -> None:
    machine = quorum(1)
    machine.on_reachable(2, 0)
    machine.on_tick(0)
    for voter in (2, 3):
        granted(machine, voter, 0, is_granted=False)

    machine.on_reachable(2, 1)

    assert machine.deadline_ms is not None and machine.deadline_ms > 900


def test_a_dead_leader_is_replaced_at_once_by_the_first_of_the_others() -> None:
    second, third = follower(2, now_ms=50), follower(3, now_ms=50)

    for machine in (second, third):
        machine.on_leader_dead(1, 60)

    assert (second.deadline_ms, third.deadline_ms) == (60, 60 + TIMING.stagger_ms)
    second.on_tick(60)
    assert second.role is Role.PROSPECTIVE
    assert is_granted(third, call(2, 3, pre=True))


def test_who_lost_the_pre_vote_for_a_dead_leader_tries_again_soon() -> None:
    machine = follower(2)
    machine.on_leader_dead(1, 60)
    machine.on_tick(60)

    granted(machine, 3, 60, is_granted=False)
    granted(machine, 1, 60, is_granted=False)

    assert machine.role is Role.FOLLOWER
    assert machine.deadline_ms is not None
    assert machine.deadline_ms < 60 + TIMING.fetch_timeout_ms // 4
    assert is_granted(machine, call(3, 3, pre=True), 61)


def test_a_leader_thought_dead_that_answers_is_followed_again() -> None:
    machine = follower(2)
    machine.on_leader_dead(1, 60)

    machine.on_fetch_answer(1, ErrorCode.NONE, leader_id=1, quorum_epoch=3, now_ms=61)

    assert machine.deadline_ms == 61 + TIMING.fetch_timeout_ms
    assert not is_granted(machine, call(3, 3, pre=True), 62)


def test_a_leader_that_leaves_names_its_successors() -> None:
    machine = leader(MemoryLog())
    machine.on_fetch(3, 1, 10)

    ready = machine.resign(20)

    assert [change.role for change in ready.changes] == [Role.RESIGNED]
    wish = machine.request_for(2, 20)
    assert wish is not None and getattr(wish, "preferred", None) == (3, 2)


@pytest.mark.parametrize(
    ("node_id", "preferred", "rank"), [(2, (3, 2), 1), (3, (3, 2), 0), (2, (), 0), (3, (), 1)]
)
def test_successors_begin_in_their_order(
    node_id: int, preferred: tuple[int, ...], rank: int
) -> None:
    machine = follower(node_id)

    machine.on_end_epoch(1, 3, preferred, 100)

    assert machine.deadline_ms == 100 + rank * TIMING.stagger_ms


def test_the_leader_of_a_later_epoch_is_followed_whatever_one_was() -> None:
    for machine in (quorum(2), leader(MemoryLog()), follower(2)):
        machine.on_begin_epoch(3, 9, 5)
        assert (machine.role, machine.leader_id, machine.quorum_epoch) == (Role.FOLLOWER, 3, 9)
        machine.check()


def test_a_candidate_that_lost_tries_again_after_a_random_while() -> None:
    machine = quorum()
    now_ms = stand(machine)
    granted(machine, 2, now_ms)
    assert (machine.role, machine.quorum_epoch) == (Role.CANDIDATE, 1)

    granted(machine, 2, now_ms, is_granted=False)
    granted(machine, 3, now_ms, is_granted=False)

    assert (machine.role, machine.request_for(2, now_ms)) == (Role.CANDIDATE, None)
    assert machine.deadline_ms is not None
    assert now_ms < machine.deadline_ms <= now_ms + TIMING.election_backoff_max_ms
    machine.on_tick(machine.deadline_ms)
    assert machine.role is Role.PROSPECTIVE
