"""JoinGroup: what is refused before any coordinator, and joins that wait."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.group_node import GROUP, GroupNode, joining
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_11_join_group as api
from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest
from tidelog.core.wire.messages.api_15_describe_groups import DescribeGroupsRequest


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_member_joins_in_every_version(version: int) -> None:
    node = GroupNode()
    answer = node.ask(joining(), version)
    if version >= 4:
        assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
        answer = node.ask(joining(member_id=answer.member_id), version)
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 1)
    assert answer.leader == answer.member_id
    assert answer.member_id.startswith("client-")
    assert answer.protocol_name == "range"


@pytest.mark.parametrize("version", [0, 9])
@pytest.mark.parametrize(
    ("group", "session_ms", "error"),
    [
        ("", 10_000, ErrorCode.INVALID_GROUP_ID),
        (GROUP, 5_999, ErrorCode.INVALID_SESSION_TIMEOUT),
        (GROUP, 1_800_001, ErrorCode.INVALID_SESSION_TIMEOUT),
    ],
)
def test_refusals_need_no_coordinator(
    version: int, group: str, session_ms: int, error: ErrorCode
) -> None:
    node = GroupNode(has_topic=False)
    answer = node.ask(joining(group, session_timeout_ms=session_ms, member_id="m"), version)
    assert (answer.error_code, answer.member_id) == (error, "m")


@pytest.mark.parametrize("version", [0, 9])
def test_a_node_without_the_groups_partition_is_not_its_coordinator(version: int) -> None:
    answer = GroupNode(has_topic=False).ask(joining(), version)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR


def test_version_0_waits_for_members_as_long_as_their_sessions() -> None:
    node = GroupNode()
    node.ask(joining(), 0)
    node.send(joining(), 0, client=2)
    assert node.waits(2)
    before_ms = node.world.now_ms
    assert node.answer(2).error_code == ErrorCode.NONE
    assert node.world.now_ms - before_ms == 10_000


def test_the_address_of_a_member_is_written_as_kafka_does() -> None:
    node = GroupNode()
    node.stable()
    (group,) = node.ask(DescribeGroupsRequest(groups=[GROUP]), 6).groups
    (member,) = group.members
    assert (member.client_id, member.client_host) == ("client", "/golden")


def test_a_connection_that_ends_while_its_join_waits_harms_nobody() -> None:
    node = GroupNode()
    member_id = node.stable()
    node.send(joining(), 3, client=2)
    assert node.waits(2)

    node.close(2)

    beat = HeartbeatRequest(group_id=GROUP, generation_id=1, member_id=member_id)
    assert node.ask(beat, 3).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    answer = node.ask(joining(member_id=member_id), 3)
    assert answer.generation_id == 2
    assert len(answer.members) == 2
