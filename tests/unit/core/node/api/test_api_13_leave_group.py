"""LeaveGroup: one member in old versions, many in newer ones."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.group_node import GROUP, GroupNode
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_13_leave_group as api
from tidelog.core.wire.messages.api_13_leave_group import (
    LeaveGroupRequest,
    LeaveGroupRequestMember,
)


def leaving(*member_ids: str, group: str = GROUP) -> LeaveGroupRequest:
    members = [LeaveGroupRequestMember(member_id=member_id) for member_id in member_ids]
    return LeaveGroupRequest(group_id=group, members=members)


@pytest.mark.parametrize("version", api.VERSIONS[:3])
def test_old_versions_put_the_members_outcome_on_top(version: int) -> None:
    node = GroupNode()
    member_id = node.stable()

    def leave(who: str) -> int:
        code: int = node.ask(LeaveGroupRequest(group_id=GROUP, member_id=who), version).error_code
        return code

    assert leave("someone") == ErrorCode.UNKNOWN_MEMBER_ID
    assert leave(member_id) == ErrorCode.NONE
    assert leave(member_id) == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize("version", api.VERSIONS[3:])
def test_newer_versions_answer_each_member(version: int) -> None:
    node = GroupNode()
    answer = node.ask(leaving("someone", node.stable()), version)
    assert answer.error_code == ErrorCode.NONE
    assert [it.error_code for it in answer.members] == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.NONE,
    ]


@pytest.mark.parametrize("version", [0, 5])
def test_a_group_without_a_name_is_invalid(version: int) -> None:
    request = LeaveGroupRequest(group_id="", member_id="m") if version < 3 else leaving(group="")
    answer = GroupNode(has_topic=False).ask(request, version)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


def test_a_node_without_the_groups_partition_is_not_its_coordinator() -> None:
    answer = GroupNode(has_topic=False).ask(leaving("m"), 5)
    assert (answer.error_code, answer.members) == (ErrorCode.NOT_COORDINATOR, [])
