"""Heartbeat: sessions that go on, and those that are over."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.group_node import GROUP, SESSION_MS, GroupNode, joining
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_12_heartbeat as api
from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest


def beat(member_id: str, generation: int = 1, group: str = GROUP) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group, generation_id=generation, member_id=member_id)


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_member_is_well_in_every_version(version: int) -> None:
    node = GroupNode()
    assert node.ask(beat(node.stable()), version).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 4])
def test_refusals(version: int) -> None:
    node = GroupNode()
    member_id = node.stable()
    table = [
        (beat("someone"), ErrorCode.UNKNOWN_MEMBER_ID),
        (beat(member_id, generation=2), ErrorCode.ILLEGAL_GENERATION),
        (beat(member_id, group="missing"), ErrorCode.UNKNOWN_MEMBER_ID),
        (beat(member_id, group=""), ErrorCode.INVALID_GROUP_ID),
    ]
    for request, error in table:
        assert node.ask(request, version).error_code == error


def test_without_heartbeats_a_session_ends_and_the_others_are_told() -> None:
    node = GroupNode()
    silent = node.stable(session_timeout_ms=SESSION_MS)
    node.send(joining(session_timeout_ms=60_000), 3, client=2)
    leader = node.ask(joining(member_id=silent), 3)
    other = node.answer(2).member_id

    node.pass_time(SESSION_MS)

    answer = node.ask(beat(other, generation=leader.generation_id), 3, client=2)
    assert answer.error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert node.ask(beat(silent, generation=2), 3).error_code == ErrorCode.UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("error", "answered"),
    [
        (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NONE),
        (ErrorCode.NOT_COORDINATOR, ErrorCode.NOT_COORDINATOR),
    ],
)
def test_while_the_group_is_being_loaded_all_is_well(error: ErrorCode, answered: ErrorCode) -> None:
    assert api.refuse(error).error_code == answered
