"""SyncGroup, Heartbeat, LeaveGroup, sessions, and what a successor inherits."""

from __future__ import annotations

import pytest

from tests.unit.core.groups.given import (
    GROUP,
    REBALANCE_MS,
    SESSION_MS,
    WALL_START_MS,
    GroupsUnderTest,
    commit,
    completing,
    joined,
    last_value,
    synced,
)
from tidelog.core.coordinator.outcome import ReplyTo
from tidelog.core.groups.classic_group import ClassicGroup, ClassicState
from tidelog.core.groups.group_records import (
    GroupMetadataMember,
    GroupMetadataValue,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_14_sync_group import SyncGroupRequest


class TestSync:
    def test_members_wait_for_the_leaders_assignment(self) -> None:
        here = GroupsUnderTest()
        leader, follower = completing(here)

        waiting = here.sync(follower)
        assert waiting.waits
        own = here.sync(leader, {leader: b"A", follower: b"B"})

        assert synced(own).assignment == b"A"
        assert synced(waiting).assignment == b"B"
        assert (synced(own).protocol_type, synced(own).protocol_name) == ("consumer", "range")
        assert here.group.state is ClassicState.STABLE

    def test_whoever_comes_later_gets_its_assignment_at_once(self) -> None:
        here = GroupsUnderTest()
        leader, follower = completing(here)
        here.sync(leader, {leader: b"A", follower: b"B"})
        assert synced(here.sync(follower)).assignment == b"B"

    def test_a_member_that_the_leader_left_out_gets_nothing(self) -> None:
        here = GroupsUnderTest()
        leader, follower = completing(here)
        here.sync(leader, {leader: b"A", "stranger": b"C"})
        assert synced(here.sync(follower)).assignment == b""

    def test_the_generation_is_written_with_all_assignments(self) -> None:
        here = GroupsUnderTest()
        leader, follower = completing(here)
        here.sync(leader, {leader: b"A", follower: b"B"})

        value = last_value(here)

        assert (value.generation, value.protocol, value.leader) == (3, "range", leader)
        assert {it.member_id: it.assignment for it in value.members} == {
            leader: b"A",
            follower: b"B",
        }
        assert value.members[0].session_timeout == SESSION_MS
        assert value.members[0].rebalance_timeout == REBALANCE_MS

    @pytest.mark.parametrize(
        ("member", "generation", "protocol_type", "protocol", "error"),
        [
            ("stranger", 1, None, None, ErrorCode.UNKNOWN_MEMBER_ID),
            (None, 0, None, None, ErrorCode.ILLEGAL_GENERATION),
            (None, 2, None, None, ErrorCode.ILLEGAL_GENERATION),
            (None, 1, "connect", "range", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            (None, 1, "consumer", "sticky", ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
            (None, 1, "consumer", "range", ErrorCode.NONE),
        ],
    )
    def test_refusals(
        self,
        member: str | None,
        generation: int,
        protocol_type: str | None,
        protocol: str | None,
        error: ErrorCode,
    ) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()
        sync = here.sync(
            member or member_id,
            generation=generation,
            protocol_type=protocol_type,
            protocol=protocol,
        )
        assert sync.error == error

    def test_a_group_that_rebalances_again_sends_its_waiting_members_back(self) -> None:
        here = GroupsUnderTest()
        _, follower = completing(here)
        waiting = here.sync(follower)

        here.new_member()

        assert waiting.error == ErrorCode.REBALANCE_IN_PROGRESS
        assert here.sync(follower).error == ErrorCode.REBALANCE_IN_PROGRESS

    def test_a_sync_that_is_repeated_while_it_waits_leaves_no_caller_without_an_answer(
        self,
    ) -> None:
        here = GroupsUnderTest()
        leader, follower = completing(here)
        given_up, again = here.sync(follower), here.sync(follower)
        here.sync(leader, {follower: b"B"})
        assert given_up.error == ErrorCode.REBALANCE_IN_PROGRESS
        assert synced(again).assignment == b"B"

    def test_members_that_do_not_sync_are_out_after_the_rebalance_timeout(self) -> None:
        here = GroupsUnderTest()
        leader, follower = completing(here)
        here.sync(leader, {leader: b"A"})
        for _ in range(REBALANCE_MS // 5_000):
            here.wait(5_000)
            here.heartbeat(leader)
            here.heartbeat(follower)

        assert list(here.group.members) == [leader]
        assert here.group.state is ClassicState.PREPARING_REBALANCE

    def test_an_assignment_that_does_not_fit_into_a_batch_is_refused_to_all(self) -> None:
        here = GroupsUnderTest()
        leader, follower = completing(here)
        waiting = here.sync(follower)
        own = here.caller()
        request = SyncGroupRequest(group_id=GROUP, generation_id=3, member_id=leader)

        outcome = here.groups.sync(request, ReplyTo(own), here.now_ms)
        assert outcome.if_too_large is not None
        here.take(outcome.if_too_large())

        assert own.error == waiting.error == ErrorCode.UNKNOWN_SERVER_ERROR
        assert here.group.state is ClassicState.PREPARING_REBALANCE


class TestSessions:
    def test_a_member_without_heartbeats_is_out(self) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()

        here.wait(SESSION_MS)

        assert here.group.state is ClassicState.EMPTY
        assert here.heartbeat(member_id) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_heartbeats_keep_it_in(self) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()
        for _ in range(5):
            here.wait(SESSION_MS - 1)
            assert here.heartbeat(member_id) == ErrorCode.NONE

    def test_a_commit_is_a_sign_of_life(self) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()
        here.wait(SESSION_MS - 1)
        assert commit(here, member_id, generation=1) == ErrorCode.NONE
        here.wait(SESSION_MS - 1)
        assert here.heartbeat(member_id) == ErrorCode.NONE

    def test_a_member_that_waits_for_the_others_is_alive(self) -> None:
        here = GroupsUnderTest()
        first, second = here.stable(2, session_ms=SESSION_MS)
        join = here.join(here.leader)
        other = second if here.leader == first else first

        for _ in range(3):
            here.wait(SESSION_MS - 1)
            here.heartbeat(other)

        assert join.waits
        assert len(here.group.members) == 2

    @pytest.mark.parametrize(
        ("generation", "error"),
        [(0, ErrorCode.ILLEGAL_GENERATION), (2, ErrorCode.ILLEGAL_GENERATION)],
    )
    def test_another_generation_is_refused(self, generation: int, error: ErrorCode) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()
        assert here.heartbeat(member_id, generation=generation) == error

    def test_a_group_that_does_not_exist_has_no_members(self) -> None:
        assert GroupsUnderTest().heartbeat("someone") == ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_heartbeat_before_the_sync_is_a_heartbeat(self) -> None:
        here = GroupsUnderTest()
        leader, _ = completing(here)
        assert here.heartbeat(leader) == ErrorCode.NONE


class TestLeave:
    def test_many_leave_at_once_and_each_has_its_answer(self) -> None:
        here = GroupsUnderTest()
        first, second, third = here.stable(3)

        answer = here.leave((first, None), ("stranger", None), (second, None), ("", None))

        assert [it.error_code for it in answer.members] == [
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
            ErrorCode.NONE,
            ErrorCode.UNKNOWN_MEMBER_ID,
        ]
        assert list(here.group.members) == [third]
        assert here.group.state is ClassicState.PREPARING_REBALANCE

    def test_the_last_member_leaves_an_empty_group_with_a_record(self) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()
        here.wait(5)

        here.leave((member_id, None))

        value = last_value(here)
        assert here.group.state is ClassicState.EMPTY
        assert (value.generation, value.members, value.leader, value.protocol) == (
            *(2, [], None, None),
        )
        assert value.protocol_type == "consumer"
        assert value.current_state_timestamp == WALL_START_MS + 5

    def test_a_static_member_is_removed_by_its_instance_alone(self) -> None:
        here = GroupsUnderTest()
        here.stable(instance="one")
        assert here.leave(("", "two")).members[0].error_code == ErrorCode.UNKNOWN_MEMBER_ID
        answer = here.leave(("", "one"))
        assert (answer.members[0].error_code, answer.members[0].member_id) == (ErrorCode.NONE, "")
        assert here.group.state is ClassicState.EMPTY

    def test_a_pending_member_may_leave(self) -> None:
        here = GroupsUnderTest()
        pending = joined(here.join()).member_id
        assert here.leave((pending, None)).members[0].error_code == ErrorCode.NONE
        assert not here.group.pending

    def test_a_group_that_does_not_exist_has_nobody_to_leave(self) -> None:
        answer = GroupsUnderTest().leave(("someone", None))
        assert (answer.error_code, answer.members[0].error_code) == (
            *(ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID),
        )

    def test_whoever_leaves_while_it_waits_for_its_assignment_is_answered(self) -> None:
        here = GroupsUnderTest()
        _, follower = completing(here)
        waiting = here.sync(follower)
        here.leave((follower, None))
        assert waiting.error == ErrorCode.UNKNOWN_MEMBER_ID

    def test_the_last_one_that_was_waited_for_leaves_and_the_others_go_on(self) -> None:
        here = GroupsUnderTest()
        (silent,) = here.stable()
        _, join = here.new_member()
        here.leave((silent, None))
        assert joined(join).generation_id == 2

    def test_a_leader_that_leaves_is_succeeded_by_a_member(self) -> None:
        here = GroupsUnderTest()
        ids = here.stable(2)
        leader = here.leader
        here.leave((leader, None))
        assert here.leader in set(ids) - {leader}


class TestSuccessor:
    def test_members_go_on_without_a_rebalance_and_with_new_sessions(self) -> None:
        here = GroupsUnderTest()
        first, second = here.stable(2)
        later = GroupsUnderTest(here.log, now_ms=1_000_000)

        later.wait(SESSION_MS - 1)
        assert later.heartbeat(first) == later.heartbeat(second) == ErrorCode.NONE
        assert synced(later.sync(first)).assignment == first.encode()
        assert later.leader == here.leader

    def test_the_leader_that_joins_again_begins_the_next_generation(self) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()
        later = GroupsUnderTest(here.log)
        assert joined(later.join(member_id)).generation_id == 2

    def test_an_empty_group_keeps_its_generation_and_the_time_when_it_became_empty(self) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()
        here.wait(7)
        here.leave((member_id, None))
        later = GroupsUnderTest(here.log).group
        assert (later.state, later.generation) == (ClassicState.EMPTY, 2)
        assert later.state_timestamp_ms == WALL_START_MS + 7
        assert later.protocol_type == "consumer"

    def test_a_generation_without_assignment_is_forgotten(self) -> None:
        """Nobody has used it: members join again, and get a generation from the successor."""
        here = GroupsUnderTest()
        completing(here)
        later = GroupsUnderTest(here.log)
        assert later.group.generation == here.group.generation - 1


def test_a_record_without_a_rebalance_timeout_takes_the_session_timeout() -> None:
    """Kafka before 0.10.1 wrote such records."""
    member = GroupMetadataMember(member_id="m", session_timeout=9_000)
    value = GroupMetadataValue(protocol_type="consumer", protocol="range", members=[member])
    group = ClassicGroup.from_record(GROUP, value)
    assert group.rebalance_timeout_ms == 9_000
    assert group.leader == "m"
    assert group.state_timestamp_ms is None
