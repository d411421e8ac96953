"""DeleteGroups: empty groups and nothing else."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.group_node import GroupNode
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_42_delete_groups as api
from tidelog.core.wire.messages.api_13_leave_group import (
    LeaveGroupRequest,
    LeaveGroupRequestMember,
)
from tidelog.core.wire.messages.api_16_list_groups import ListGroupsRequest
from tidelog.core.wire.messages.api_42_delete_groups import DeleteGroupsRequest


@pytest.mark.parametrize("version", api.VERSIONS)
def test_only_an_empty_group_is_deleted(version: int) -> None:
    node = GroupNode()
    node.stable("a")
    gone = LeaveGroupRequestMember(member_id=node.stable("b"))
    node.ask(LeaveGroupRequest(group_id="b", members=[gone]), 5)

    results = node.ask(DeleteGroupsRequest(groups_names=["a", "b", "c", "b"]), version).results

    assert [(it.group_id, it.error_code) for it in results] == [
        ("a", ErrorCode.NON_EMPTY_GROUP),
        ("b", ErrorCode.NONE),
        ("c", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert [it.group_id for it in node.ask(ListGroupsRequest(), 5).groups] == ["a"]


def test_a_node_without_their_partitions_says_so_for_each() -> None:
    node = GroupNode(has_topic=False)
    results = node.ask(DeleteGroupsRequest(groups_names=["a", "b"]), 2).results
    assert [it.error_code for it in results] == [ErrorCode.NOT_COORDINATOR] * 2
