"""ConsumerGroupDescribe over the wire, and the other APIs that show or end such a group."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.group_node import GROUP, GroupNode
from tests.unit.core.node.api.test_api_68_consumer_group_heartbeat import JOIN, beat
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_69_consumer_group_describe as api
from tidelog.core.wire.messages.api_15_describe_groups import DescribeGroupsRequest
from tidelog.core.wire.messages.api_16_list_groups import ListGroupsRequest
from tidelog.core.wire.messages.api_42_delete_groups import DeleteGroupsRequest
from tidelog.core.wire.messages.api_57_update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from tidelog.core.wire.messages.api_69_consumer_group_describe import ConsumerGroupDescribeRequest

NO_OPERATIONS = -(2**31)


def ask(*group_ids: str, operations: bool = False) -> ConsumerGroupDescribeRequest:
    return ConsumerGroupDescribeRequest(
        group_ids=list(group_ids), include_authorized_operations=operations
    )


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_group_in_every_version(version: int) -> None:
    node = GroupNode()
    node.ask(beat(rack_id="r", **JOIN), 1)
    (group,) = node.ask(ask(GROUP), version).groups
    assert (group.error_code, group.group_state) == (ErrorCode.NONE, "Stable")
    assert (group.group_epoch, group.assignment_epoch, group.assignor_name) == (2, 2, "uniform")
    assert group.authorized_operations == NO_OPERATIONS
    (member,) = group.members
    assert (member.member_id, member.rack_id, member.member_epoch) == ("a", "r", 2)
    assert member.subscribed_topic_names == ["t"]
    assert member.member_type == (1 if version else -1)
    (group,) = node.ask(ask(GROUP, operations=True), version).groups
    assert group.authorized_operations != NO_OPERATIONS


def test_groups_that_are_not_there_or_of_the_other_kind() -> None:
    node = GroupNode()
    node.stable()
    groups = node.ask(ask(GROUP, "missing", ""), 1).groups
    errors = [ErrorCode.GROUP_ID_NOT_FOUND] * 2 + [ErrorCode.INVALID_GROUP_ID]
    assert [group.error_code for group in groups] == errors
    messages = [f"Group {GROUP} is not a consumer group.", "Group missing not found.", None]
    assert [group.error_message for group in groups] == messages


def test_the_other_apis_know_the_kind() -> None:
    node = GroupNode()
    node.ask(beat(**JOIN), 1)
    (listed,) = node.ask(ListGroupsRequest(types_filter=["Consumer"]), 5).groups
    shown = (listed.group_type, listed.group_state, listed.protocol_type)
    assert shown == ("consumer", "Stable", "consumer")
    assert node.ask(ListGroupsRequest(types_filter=["classic"]), 5).groups == []
    (described,) = node.ask(DescribeGroupsRequest(groups=[GROUP]), 6).groups
    assert described.error_code == ErrorCode.GROUP_ID_NOT_FOUND
    assert described.error_message == f"Group {GROUP} is not a classic group."

    delete = DeleteGroupsRequest(groups_names=[GROUP])
    (result,) = node.ask(delete, 2).results
    assert result.error_code == ErrorCode.NON_EMPTY_GROUP
    node.ask(beat(member_epoch=-1), 1)
    (result,) = node.ask(delete, 2).results
    assert result.error_code == ErrorCode.NONE
    assert node.ask(ListGroupsRequest(), 5).groups == []


def test_without_the_feature_there_are_no_such_groups() -> None:
    node = GroupNode()
    update = FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
    node.ask(UpdateFeaturesRequest(feature_updates=[update]), 1)
    (group,) = node.ask(ask(GROUP), 1).groups
    assert group.error_code == ErrorCode.UNSUPPORTED_VERSION
