"""DescribeGroups: several groups, each from its own partition."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.group_node import GroupNode
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_15_describe_groups as api
from tidelog.core.wire.messages.api_15_describe_groups import DescribeGroupsRequest

NAMES = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("version", api.VERSIONS)
def test_groups_come_in_the_order_in_which_they_were_asked_for(version: int) -> None:
    node = GroupNode()
    for client, name in enumerate(NAMES):
        node.stable(name, client=client)
    groups = node.ask(DescribeGroupsRequest(groups=[*reversed(NAMES)]), version).groups
    assert [it.group_id for it in groups] == [*reversed(NAMES)]
    assert {(it.group_state, it.protocol_data) for it in groups} == {("Stable", "range")}


def test_operations_are_named_if_asked_for_and_the_group_is_there() -> None:
    node = GroupNode()
    node.stable("a")
    request = DescribeGroupsRequest(groups=["a", "x"], include_authorized_operations=True)
    there, missing = node.ask(request, 6).groups
    assert there.authorized_operations == (1 << 3) + (1 << 6) + (1 << 8) + (1 << 10) + (1 << 11)
    assert missing.authorized_operations == -(2**31)
    assert missing.error_code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_node_without_their_partitions_says_so_for_each() -> None:
    groups = GroupNode(has_topic=False).ask(DescribeGroupsRequest(groups=NAMES), 6).groups
    assert [it.error_code for it in groups] == [ErrorCode.NOT_COORDINATOR] * len(NAMES)
