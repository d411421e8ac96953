"""What offsets ask of a group: commits and their deletion, and the deletion of the group."""

from __future__ import annotations

import pytest

from tests.unit.core.groups.given import GROUP, GroupsUnderTest, commit, completing, joined
from tidelog.core.groups.classic_group import ClassicState
from tidelog.core.groups.classic_member import GroupProtocol
from tidelog.core.groups.group_records import group_tombstone
from tidelog.core.model.errors import ErrorCode

SUBSCRIPTION_TO_T = b"\x00\x01" + b"\x00\x00\x00\x01" + b"\x00\x01t" + b"\xff\xff\xff\xff"
ON_T = (GroupProtocol("range", SUBSCRIPTION_TO_T),)


class TestCommits:
    @pytest.mark.parametrize(
        ("member", "generation", "version", "error"),
        [
            (None, 1, 9, ErrorCode.NONE),
            (None, 0, 9, ErrorCode.ILLEGAL_GENERATION),
            (None, -1, 9, ErrorCode.ILLEGAL_GENERATION),
            ("stranger", 1, 9, ErrorCode.UNKNOWN_MEMBER_ID),
            ("", -1, 9, ErrorCode.UNKNOWN_MEMBER_ID),
        ],
    )
    def test_of_a_stable_group(
        self, member: str | None, generation: int, version: int, error: ErrorCode
    ) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()
        caller = member_id if member is None else member
        assert commit(here, caller, generation=generation, version=version) == error

    def test_before_the_assignment_is_there(self) -> None:
        here = GroupsUnderTest()
        leader, _ = completing(here)
        generation = here.group.generation
        assert commit(here, leader, generation=generation) == ErrorCode.REBALANCE_IN_PROGRESS
        assert commit(here, leader, generation=generation, transactional=True) == ErrorCode.NONE

    def test_while_others_join_the_old_generation_may_still_commit(self) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()
        here.new_member()
        assert commit(here, member_id, generation=1) == ErrorCode.NONE

    @pytest.mark.parametrize(
        ("generation", "version", "error"),
        [
            (-1, 9, ErrorCode.NONE),
            (3, 9, ErrorCode.GROUP_ID_NOT_FOUND),
            (3, 8, ErrorCode.ILLEGAL_GENERATION),
        ],
    )
    def test_for_a_group_that_does_not_exist(
        self, generation: int, version: int, error: ErrorCode
    ) -> None:
        here = GroupsUnderTest()
        assert commit(here, "", generation=generation, version=version) == error

    def test_without_a_generation_for_a_group_without_members(self) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()
        here.leave((member_id, None))
        assert commit(here, "", generation=-1) == ErrorCode.NONE
        assert commit(here, member_id, generation=2) == ErrorCode.UNKNOWN_MEMBER_ID

    def test_a_simple_group_comes_with_its_first_offset(self) -> None:
        here = GroupsUnderTest()
        here.groups.add_simple(GROUP)
        here.groups.add_simple(GROUP)
        assert here.groups.is_empty(GROUP)
        assert here.group.protocol_type is None
        assert here.groups.validate_offset_fetch(GROUP) == ErrorCode.NONE
        here.stable()
        here.groups.add_simple(GROUP)
        assert here.group.state is ClassicState.STABLE


class TestOffsetDeletion:
    def test_of_a_topic_that_members_subscribe_to(self) -> None:
        here = GroupsUnderTest()
        here.stable(protocols=ON_T)
        groups = here.groups
        assert groups.validate_offset_delete(GROUP) == ErrorCode.NONE
        assert groups.validate_offset_delete(GROUP, "t") == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
        assert groups.validate_offset_delete(GROUP, "u") == ErrorCode.NONE

    def test_unreadable_subscriptions_may_be_to_any_topic(self) -> None:
        here = GroupsUnderTest()
        here.stable(protocols=(GroupProtocol("range", b"\x00"),))
        error = here.groups.validate_offset_delete(GROUP, "t")
        assert error == ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC

    def test_members_of_another_protocol_type_are_in_the_way(self) -> None:
        here = GroupsUnderTest()
        assert here.groups.validate_offset_delete(GROUP) == ErrorCode.GROUP_ID_NOT_FOUND
        (member_id,) = here.stable(protocol_type="connect")
        assert here.groups.validate_offset_delete(GROUP) == ErrorCode.NON_EMPTY_GROUP
        here.leave((member_id, None))
        assert here.groups.validate_offset_delete(GROUP) == ErrorCode.NONE
        assert here.groups.validate_offset_delete(GROUP, "t") == ErrorCode.NONE


class TestDeletion:
    def test_only_of_a_group_without_members(self) -> None:
        here = GroupsUnderTest()
        assert here.groups.refuse_deletion(GROUP) == ErrorCode.GROUP_ID_NOT_FOUND
        (member_id,) = here.stable()
        assert here.groups.refuse_deletion(GROUP) == ErrorCode.NON_EMPTY_GROUP
        here.leave((member_id, None))
        assert here.groups.refuse_deletion(GROUP) == ErrorCode.NONE

    def test_the_tombstone_ends_it_here_and_for_the_successor(self) -> None:
        here = GroupsUnderTest()
        (member_id,) = here.stable()
        here.leave((member_id, None))
        pending = joined(here.join()).member_id

        for record in here.groups.delete(GROUP):
            here.groups.apply(record)
            here.log.append(record)

        assert here.log[-1] == group_tombstone(GROUP)
        assert GROUP not in here.groups
        assert here.groups.next_deadline_ms() is None
        assert here.heartbeat(pending) == ErrorCode.UNKNOWN_MEMBER_ID
        assert GROUP not in GroupsUnderTest(here.log).groups

    def test_an_empty_group_without_offsets_expires_unless_somebody_is_about_to_join(self) -> None:
        here = GroupsUnderTest()
        assert here.groups.expire(GROUP) == []
        (member_id,) = here.stable()
        assert here.groups.expire(GROUP) == []
        here.leave((member_id, None))
        assert here.groups.expire(GROUP) == [group_tombstone(GROUP)]
        here.join()
        assert here.groups.expire(GROUP) == []
