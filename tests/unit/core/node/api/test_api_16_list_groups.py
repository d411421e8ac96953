"""ListGroups: all partitions of a node together."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.group_node import GroupNode
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_16_list_groups as api
from tidelog.core.wire.messages.api_16_list_groups import ListedGroup, ListGroupsRequest

NAMES = ["a", "b", "c", "d", "e"]


@pytest.mark.parametrize("version", api.VERSIONS)
def test_groups_of_all_partitions_are_listed(version: int) -> None:
    node = GroupNode()
    for client, name in enumerate(NAMES):
        node.stable(name, client=client)
    answer = node.ask(ListGroupsRequest(), version)
    assert sorted(it.group_id for it in answer.groups) == NAMES
    if version >= 5:
        assert {(it.group_state, it.group_type) for it in answer.groups} == {("Stable", "classic")}


def test_filters_are_passed_on() -> None:
    node = GroupNode()
    node.stable("a")
    assert node.ask(ListGroupsRequest(states_filter=["Empty"]), 5).groups == []
    assert node.ask(ListGroupsRequest(types_filter=["consumer"]), 5).groups == []


def test_a_node_that_coordinates_nothing_has_an_empty_list() -> None:
    answer = GroupNode(has_topic=False).ask(ListGroupsRequest(), 5)
    assert (answer.error_code, answer.groups) == (ErrorCode.NONE, [])


def test_a_partition_that_is_loading_spoils_the_list_and_one_that_left_does_not() -> None:
    listed = [ListedGroup(group_id="a")]
    assert api.combine([listed, ErrorCode.NOT_COORDINATOR]).groups == listed
    loading = api.combine([listed, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS])
    assert (loading.error_code, loading.groups) == (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, [])
