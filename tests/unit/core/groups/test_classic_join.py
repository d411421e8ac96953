"""JoinGroup: who is let in, under which id, and when the next generation begins."""

from __future__ import annotations

import pytest

from tests.unit.core.groups.given import (
    GROUP,
    RANGE,
    REBALANCE_MS,
    SESSION_MS,
    GroupsUnderTest,
    joined,
    synced,
)
from tidelog.core.groups.classic_group import NEXT, ClassicState
from tidelog.core.groups.classic_member import GroupProtocol
from tidelog.core.groups.group_records import read_group_value
from tidelog.core.groups.group_settings import NEW_MEMBER_JOIN_TIMEOUT_MS
from tidelog.core.model.errors import ErrorCode

ROUND_ROBIN = (GroupProtocol("roundrobin", b"rr"),)


def test_the_first_member_of_a_group_leads_its_first_generation() -> None:
    here = GroupsUnderTest()

    member_id, join = here.new_member()

    answer = joined(join)
    assert answer.error_code == ErrorCode.NONE
    assert (answer.generation_id, answer.protocol_name, answer.leader) == (1, "range", member_id)
    assert [(it.member_id, it.metadata) for it in answer.members] == [(member_id, b"r")]
    assert here.group.state is ClassicState.COMPLETING_REBALANCE


def test_a_new_dynamic_member_first_gets_an_id_and_then_joins_with_it() -> None:
    here = GroupsUnderTest()

    first = joined(here.join())
    assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert first.member_id.startswith("client-")
    assert here.group.pending == {first.member_id}

    second = joined(here.join(first.member_id))
    assert (second.error_code, second.leader) == (ErrorCode.NONE, first.member_id)
    assert not here.group.pending


def test_an_id_that_nobody_joins_with_is_forgotten_after_its_session() -> None:
    here = GroupsUnderTest()
    member_id = joined(here.join()).member_id

    here.wait(SESSION_MS)

    assert not here.group.pending
    assert here.join(member_id).error == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", [0, 3, 6])
def test_old_versions_have_no_null_for_a_missing_protocol(version: int) -> None:
    here = GroupsUnderTest()
    assert joined(here.join("nobody", version=version)).protocol_name == ""


def test_a_member_of_a_group_that_does_not_exist_is_unknown() -> None:
    here = GroupsUnderTest()
    join = here.join("someone")
    assert (join.error, join.answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "someone")
    assert GROUP not in here.groups


def test_a_member_that_the_group_does_not_have_is_unknown() -> None:
    here = GroupsUnderTest()
    here.stable()
    assert here.join("someone").error == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_second_member_waits_until_the_first_has_joined_again() -> None:
    here = GroupsUnderTest()
    (first,) = here.stable()

    second, join = here.new_member()
    assert join.waits
    assert here.heartbeat(first) == ErrorCode.REBALANCE_IN_PROGRESS
    again = here.join(first)

    assert joined(again).generation_id == joined(join).generation_id == 2
    assert {it.member_id for it in joined(again).members} == {first, second}
    assert joined(join).members == []
    assert joined(join).leader == first


def test_a_dynamic_member_that_does_not_join_again_is_out_after_the_rebalance_timeout() -> None:
    here = GroupsUnderTest()
    (silent,) = here.stable(session_ms=REBALANCE_MS * 2)

    second, join = here.new_member()
    here.wait(REBALANCE_MS)

    assert joined(join).leader == second
    assert list(here.group.members) == [second]
    assert here.heartbeat(silent) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_follower_that_joins_a_stable_group_unchanged_only_learns_the_generation() -> None:
    here = GroupsUnderTest()
    ids = here.stable(2)
    follower = next(member_id for member_id in ids if member_id != here.leader)

    join = joined(here.join(follower))

    assert (join.error_code, join.members) == (ErrorCode.NONE, [])
    assert here.group.state is ClassicState.STABLE


def test_a_leader_that_joins_a_stable_group_wants_a_rebalance() -> None:
    here = GroupsUnderTest()
    here.stable(2)
    join = here.join(here.leader)
    assert join.waits
    assert here.group.state is ClassicState.PREPARING_REBALANCE


def test_a_member_that_changed_its_metadata_causes_a_rebalance() -> None:
    here = GroupsUnderTest()
    ids = here.stable(2)
    follower = next(member_id for member_id in ids if member_id != here.leader)
    changed = (GroupProtocol("range", b"changed"),)

    assert here.join(follower, protocols=changed).waits

    assert here.group.state is ClassicState.PREPARING_REBALANCE


def test_a_member_that_missed_its_answer_gets_it_again_while_the_leader_assigns() -> None:
    here = GroupsUnderTest()
    member_id, _ = here.new_member()

    again = joined(here.join(member_id))

    assert again.generation_id == 1
    assert [it.member_id for it in again.members] == [member_id]


def test_a_join_that_is_repeated_while_it_waits_leaves_no_caller_without_an_answer() -> None:
    here = GroupsUnderTest()
    (first,) = here.stable()
    second, given_up = here.new_member()

    again = here.join(second)
    here.join(first)

    assert given_up.error == ErrorCode.REBALANCE_IN_PROGRESS
    assert joined(again).generation_id == 2


@pytest.mark.parametrize(
    ("protocol_type", "protocols"),
    [("connect", RANGE), ("consumer", ROUND_ROBIN), ("consumer", ())],
)
def test_a_member_must_share_type_and_a_protocol_with_all(
    protocol_type: str, protocols: tuple[GroupProtocol, ...]
) -> None:
    here = GroupsUnderTest()
    here.stable()
    join = here.join(protocol_type=protocol_type, protocols=protocols)
    assert join.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize(("protocol_type", "protocols"), [("", RANGE), ("consumer", ())])
def test_the_first_member_must_name_a_type_and_a_protocol(
    protocol_type: str, protocols: tuple[GroupProtocol, ...]
) -> None:
    here = GroupsUnderTest()
    join = here.join(protocol_type=protocol_type, protocols=protocols)
    assert join.error == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_with_the_most_votes_among_the_common_ones_wins() -> None:
    here = GroupsUnderTest()
    a_b = (GroupProtocol("a", b"1"), GroupProtocol("b", b"2"))
    b_a = (GroupProtocol("b", b"3"), GroupProtocol("a", b"4"))
    c_b_a = (GroupProtocol("c", b""), *b_a)
    first, _ = here.new_member(protocols=a_b)
    second, _ = here.new_member(protocols=b_a)
    third, last = here.new_member(protocols=c_b_a)

    here.join(first, protocols=a_b)
    here.join(second, protocols=b_a)

    assert joined(last).protocol_name == "b"
    assert here.group.members.keys() == {first, second, third}


def test_a_protocol_type_other_than_consumer_is_a_group_like_any_other() -> None:
    here = GroupsUnderTest()
    connect = (GroupProtocol("sessioned", b"worker"),)
    (member_id,) = here.stable(protocol_type="connect", protocols=connect)
    assert here.heartbeat(member_id) == ErrorCode.NONE
    assert here.group.subscribed_topics is None


class TestInitialDelay:
    def test_a_group_that_was_empty_waits_for_more_members(self) -> None:
        here = GroupsUnderTest(initial_rebalance_delay_ms=3_000)
        first, join = here.new_member()

        here.wait(2_999)
        assert join.waits
        here.wait(1)

        assert joined(join).leader == first

    def test_each_new_member_prolongs_the_delay_up_to_the_rebalance_timeout(self) -> None:
        here = GroupsUnderTest(initial_rebalance_delay_ms=3_000)
        _, join = here.new_member(rebalance_ms=7_000)
        ends = []
        for _ in range(4):
            here.wait(2_000)
            here.new_member(rebalance_ms=7_000)
            ends.append(join.waits)

        assert ends == [True, True, True, False]
        assert len(joined(join).members) == 4  # the last one came when the time was up

    def test_all_members_there_does_not_shorten_it(self) -> None:
        here = GroupsUnderTest(initial_rebalance_delay_ms=3_000)
        member_id, join = here.new_member()
        again = here.join(member_id)
        assert join.error == ErrorCode.REBALANCE_IN_PROGRESS
        assert again.waits

    def test_members_that_all_leave_during_it_leave_an_empty_group(self) -> None:
        here = GroupsUnderTest(initial_rebalance_delay_ms=3_000)
        member_id, join = here.new_member()
        here.leave((member_id, None))
        assert join.error == ErrorCode.UNKNOWN_MEMBER_ID

        here.wait(3_000)

        assert here.group.state is ClassicState.EMPTY


class TestMaxSize:
    def test_a_member_too_many_is_refused(self) -> None:
        here = GroupsUnderTest(size_max=1)
        here.stable()
        join = here.join()
        assert (join.error, join.answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")

    def test_members_may_join_again_in_a_full_group(self) -> None:
        here = GroupsUnderTest(size_max=1)
        (member_id,) = here.stable()
        assert here.join(member_id).error == ErrorCode.NONE

    def test_a_loaded_group_that_is_too_large_by_now_loses_its_last_member_to_join(self) -> None:
        before = GroupsUnderTest()
        first, second = before.stable(2)
        here = GroupsUnderTest(before.log, size_max=1)
        assert here.heartbeat(first) == ErrorCode.REBALANCE_IN_PROGRESS

        join = here.join(first)
        refused = here.join(second)

        assert refused.error == ErrorCode.GROUP_MAX_SIZE_REACHED
        assert joined(join).error_code == ErrorCode.NONE
        assert list(here.group.members) == [first]


class TestStaticMembers:
    def test_a_restarted_one_keeps_its_assignment_without_a_rebalance(self) -> None:
        here = GroupsUnderTest()
        (old,) = here.stable(instance="one")

        join = joined(here.join(instance="one"))

        assert (join.error_code, join.generation_id) == (ErrorCode.NONE, 1)
        assert join.leader == join.member_id != old
        assert join.skip_assignment
        assert [it.group_instance_id for it in join.members] == ["one"]
        assert synced(here.sync(join.member_id, instance="one")).assignment == old.encode()
        assert here.group.state is ClassicState.STABLE

    def test_the_process_before_it_is_fenced(self) -> None:
        here = GroupsUnderTest()
        (old,) = here.stable(instance="one")
        new = joined(here.join(instance="one")).member_id

        assert here.heartbeat(old, instance="one") == ErrorCode.FENCED_INSTANCE_ID
        assert here.sync(old, instance="one").error == ErrorCode.FENCED_INSTANCE_ID
        assert here.join(old, instance="one").error == ErrorCode.FENCED_INSTANCE_ID
        assert here.leave((old, "one")).members[0].error_code == ErrorCode.FENCED_INSTANCE_ID
        assert here.heartbeat(old) == ErrorCode.UNKNOWN_MEMBER_ID
        assert here.heartbeat(new, instance="one") == ErrorCode.NONE

    def test_a_leader_of_an_old_version_does_not_learn_that_it_leads(self) -> None:
        here = GroupsUnderTest()
        (old,) = here.stable(instance="one")
        join = joined(here.join(instance="one", version=8))
        assert (join.leader, join.members, join.skip_assignment) == (old, [], False)

    def test_its_new_id_is_written_for_the_next_coordinator(self) -> None:
        here = GroupsUnderTest()
        (old,) = here.stable(instance="one")
        new = joined(here.join(instance="one")).member_id

        later = GroupsUnderTest(here.log)

        assert later.heartbeat(new, instance="one") == ErrorCode.NONE
        assert later.heartbeat(old, instance="one") == ErrorCode.FENCED_INSTANCE_ID

    def test_one_that_changes_the_chosen_protocol_causes_a_rebalance(self) -> None:
        here = GroupsUnderTest()
        both = (*RANGE, *ROUND_ROBIN)
        here.stable(instance="one", protocols=both)
        other_way = (*ROUND_ROBIN, *RANGE)

        join = joined(here.join(instance="one", protocols=other_way))

        assert (join.generation_id, join.protocol_name) == (2, "roundrobin")
        assert not join.skip_assignment

    def test_one_that_is_replaced_while_it_waits_is_answered(self) -> None:
        here = GroupsUnderTest()
        here.stable(session_ms=REBALANCE_MS * 2)
        _, waiting = here.new_member(instance="one")

        here.join(instance="one")

        assert waiting.error == ErrorCode.FENCED_INSTANCE_ID
        assert here.group.state is ClassicState.PREPARING_REBALANCE

    def test_one_that_is_replaced_before_the_assignment_causes_a_rebalance(self) -> None:
        here = GroupsUnderTest()
        here.new_member(instance="one")
        join = joined(here.join(instance="one"))
        assert join.generation_id == 2

    def test_one_that_does_not_join_again_stays_until_its_session_ends(self) -> None:
        here = GroupsUnderTest()
        (static,) = here.stable(instance="one", session_ms=REBALANCE_MS * 3)
        _, join = here.new_member()

        here.wait(REBALANCE_MS)

        assert joined(join).error_code == ErrorCode.NONE
        assert static in here.group.members

    def test_if_no_member_joins_again_the_wait_begins_anew(self) -> None:
        here = GroupsUnderTest()
        ids = here.stable(instance="one", session_ms=REBALANCE_MS * 3)
        stranger, _ = here.new_member(session_ms=REBALANCE_MS * 3)
        here.leave((stranger, None))
        generation = here.group.generation

        here.wait(REBALANCE_MS)

        assert here.group.state is ClassicState.PREPARING_REBALANCE
        assert (list(here.group.members), here.group.generation) == (ids, generation)

    def test_an_unknown_instance_is_an_unknown_member(self) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()
        assert here.heartbeat(member_id, instance="two") == ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_pending_dynamic_id_cannot_become_static(self) -> None:
        here = GroupsUnderTest()
        pending = joined(here.join()).member_id
        assert here.join(pending, instance="one").error == ErrorCode.UNKNOWN_SERVER_ERROR


def test_a_new_member_may_not_wait_for_ever() -> None:
    """Its client may have given up, and nobody would take the partitions that it is given."""
    here = GroupsUnderTest()
    minutes = 60_000
    here.stable(rebalance_ms=20 * minutes, session_ms=20 * minutes)
    newcomer, join = here.new_member(rebalance_ms=20 * minutes)

    here.wait(NEW_MEMBER_JOIN_TIMEOUT_MS)

    assert join.error == ErrorCode.UNKNOWN_MEMBER_ID
    assert newcomer not in here.group.members


def test_a_group_begins_with_a_record_of_an_empty_group() -> None:
    here = GroupsUnderTest()
    here.join()
    (record,) = here.log
    assert record.value is not None
    value = read_group_value(record.value)
    assert (value.protocol_type, value.generation, value.members) == ("", 0, [])


def test_every_state_but_dead_leads_to_dead_and_nothing_leads_out_of_it() -> None:
    assert NEXT[ClassicState.DEAD] == frozenset()
    assert all(ClassicState.DEAD in after for state, after in NEXT.items() if after)
