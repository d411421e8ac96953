"""SyncGroup: assignments that are waited for, and what they must name."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.group_node import GroupNode, joining, syncing
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_14_sync_group as api
from tidelog.core.wire.messages.api_14_sync_group import SyncGroupRequestAssignment


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_follower_gets_its_assignment_when_the_leader_has_synced(version: int) -> None:
    node = GroupNode()
    first = node.stable()
    node.send(joining(), 3, client=2)
    node.ask(joining(member_id=first), 3)
    second = node.answer(2).member_id
    named = {"protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else {}

    node.send(syncing(second, 2, **named), version, client=2)
    assert node.waits(2)
    assignments = [
        SyncGroupRequestAssignment(member_id=first, assignment=b"one"),
        SyncGroupRequestAssignment(member_id=second, assignment=b"two"),
    ]
    own = node.ask(syncing(first, 2, assignments=assignments, **named), version)

    assert bytes(own.assignment) == b"one"
    assert bytes(node.answer(2).assignment) == b"two"


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_from_version_5_on_both_type_and_name_are_needed(missing: str) -> None:
    named = {"protocol_type": "consumer", "protocol_name": "range", missing: None}
    answer = GroupNode(has_topic=False).ask(syncing("m", 1, "", **named), 5)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", [0, 4])
def test_a_group_without_a_name_is_invalid(version: int) -> None:
    answer = GroupNode(has_topic=False).ask(syncing("m", 1, ""), version)
    assert answer.error_code == ErrorCode.INVALID_GROUP_ID


def test_a_node_without_the_groups_partition_is_not_its_coordinator() -> None:
    answer = GroupNode(has_topic=False).ask(syncing("m", 1), 3)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR
