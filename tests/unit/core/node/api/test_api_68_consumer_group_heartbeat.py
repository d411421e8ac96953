"""ConsumerGroupHeartbeat over the wire: a member's life, and what is refused before its group."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.node.api.group_node import GROUP, GroupNode
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_68_consumer_group_heartbeat as api
from tidelog.core.wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.core.wire.messages.api_57_update_features import (
    FeatureUpdateKey,
    UpdateFeaturesRequest,
)
from tidelog.core.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatTopicPartitions,
)

JOIN: dict[str, Any] = {
    "rebalance_timeout_ms": 1_000,
    "subscribed_topic_names": ["t"],
    "topic_partitions": [],
}
OWNED = [ConsumerGroupHeartbeatTopicPartitions(topic_id=bytes(16), partitions=[0])]


def beat(
    member_id: str = "a", member_epoch: int = 0, **fields: Any
) -> ConsumerGroupHeartbeatRequest:
    given = {"group_id": GROUP, "member_id": member_id, "member_epoch": member_epoch, **fields}
    return ConsumerGroupHeartbeatRequest(**given)


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_members_life(version: int) -> None:
    node = GroupNode()
    joined = node.ask(beat(**JOIN), version)
    assert (joined.error_code, joined.member_id, joined.member_epoch) == (ErrorCode.NONE, "a", 2)
    assert joined.assignment.topic_partitions == [], "there is no such topic yet"
    assert node.ask(beat(member_epoch=2), version).assignment is None
    assert node.ask(beat(member_epoch=-1), version).member_epoch == -1
    assert node.ask(beat(member_epoch=2), version).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_members_of_version_0_may_get_an_id() -> None:
    node = GroupNode()
    answer = node.ask(beat("", **JOIN), 0)
    assert (answer.error_code, bool(answer.member_id)) == (ErrorCode.NONE, True)
    assert node.ask(beat("", **JOIN), 1).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (beat(group_id="", **JOIN), ErrorCode.INVALID_REQUEST),
        (beat("", 1), ErrorCode.INVALID_REQUEST),
        (beat(instance_id="", **JOIN), ErrorCode.INVALID_REQUEST),
        (beat(rack_id="", **JOIN), ErrorCode.INVALID_REQUEST),
        (beat(**{**JOIN, "rebalance_timeout_ms": -1}), ErrorCode.INVALID_REQUEST),
        (beat(**{**JOIN, "topic_partitions": OWNED}), ErrorCode.INVALID_REQUEST),
        (beat(**{**JOIN, "topic_partitions": None}), ErrorCode.INVALID_REQUEST),
        (beat(**{**JOIN, "subscribed_topic_names": None}), ErrorCode.INVALID_REQUEST),
        (beat(member_epoch=-2), ErrorCode.INVALID_REQUEST),
        (beat(member_epoch=-3), ErrorCode.INVALID_REQUEST),
        (beat(server_assignor="fair", **JOIN), ErrorCode.UNSUPPORTED_ASSIGNOR),
        (beat(subscribed_topic_regex="(", **JOIN), ErrorCode.INVALID_REGULAR_EXPRESSION),
    ],
)
def test_refusals(request_: ConsumerGroupHeartbeatRequest, error: ErrorCode) -> None:
    answer = GroupNode().ask(request_, 1)
    assert answer.error_code == error
    assert answer.error_message


def test_a_classic_group_is_taken_over_if_that_is_allowed_and_an_empty_one_always() -> None:
    node = GroupNode(group_consumer_migration_policy="disabled")
    node.stable()
    assert node.ask(beat(**JOIN), 1).error_code == ErrorCode.GROUP_ID_NOT_FOUND
    node.pass_time(60_000)
    assert node.ask(beat(**JOIN), 1).error_code == ErrorCode.NONE
    assert node.joined(client=2).error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    node.ask(beat(member_epoch=-1), 1)
    assert node.joined(client=2).error_code == ErrorCode.NONE


def test_a_session_ends_by_the_setting() -> None:
    node = GroupNode(group_consumer_session_timeout_ms="2000")
    node.ask(beat(**JOIN), 1)
    node.pass_time(2_000)
    assert node.ask(beat(member_epoch=2), 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_group_may_have_settings_of_its_own() -> None:
    """They hold from the next heartbeat on, for this group only, and until they are deleted."""
    node = GroupNode()
    node.ask(beat(**JOIN), 1)
    alter(node, "consumer.heartbeat.interval.ms", "6000")
    alter(node, "consumer.session.timeout.ms", "60000")
    assert node.ask(beat(member_epoch=2), 1).heartbeat_interval_ms == 6_000
    other = beat(group_id="other", **JOIN)
    assert node.ask(other, 1).heartbeat_interval_ms == 5_000
    node.pass_time(50_000)
    assert node.ask(beat(member_epoch=2), 1).error_code == ErrorCode.NONE
    alter(node, "consumer.heartbeat.interval.ms", None)
    assert node.ask(beat(member_epoch=2), 1).heartbeat_interval_ms == 5_000


def alter(node: GroupNode, name: str, value: str | None) -> None:
    """Set a setting of the group, or delete it."""
    config = AlterableConfig(name=name, config_operation=int(value is None), value=value)
    resource = AlterConfigsResource(resource_type=32, resource_name="g", configs=[config])
    answer = node.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
    assert answer.responses[0].error_code == ErrorCode.NONE


def test_without_the_feature_there_are_no_such_groups() -> None:
    node = GroupNode()
    update = FeatureUpdateKey(feature="group.version", max_version_level=0, upgrade_type=2)
    node.ask(UpdateFeaturesRequest(feature_updates=[update]), 1)
    assert node.ask(beat(**JOIN), 1).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_many_sessions_may_end_in_one_moment() -> None:
    """After a failover all members have the same deadline, and all of them may be gone."""
    node = GroupNode()
    for at in range(40):
        node.ask(beat(f"m{at}", **JOIN), 1)
    node.pass_time(60_000)
    answer = node.ask(beat(**JOIN), 1)
    assert answer.error_code == ErrorCode.NONE
    assert node.ask(beat("m7", 2), 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
