"""JoinGroup (api key 11), versions 0 to 9.

The group's coordinator decides (core/groups/classic_join.py). The answer may wait until all members
have joined, or their rebalance timeout is over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.classic_join import Joiner
from tidelog.core.groups.group_settings import GroupSettings
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_11_join_group import JoinGroupRequest, JoinGroupResponse

if TYPE_CHECKING:
    from tidelog.core.groups.group_shard import GroupShard
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 11
VERSIONS = range(10)
WAITS_FOR_METADATA = True

_FIRST_VERSION_WITH_NULL_PROTOCOL = 7


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(JoinGroupRequest)

    def refuse(error: ErrorCode, member_id: str = "") -> JoinGroupResponse:
        has_null = request.version >= _FIRST_VERSION_WITH_NULL_PROTOCOL
        return JoinGroupResponse(
            error_code=error, member_id=member_id, protocol_name=None if has_null else ""
        )

    error = _refuse(call, node.group_coordinator.settings)
    if error is not ErrorCode.NONE:
        request.answer(refuse(error, call.member_id))
        return
    joiner = Joiner.from_request(
        call,
        version=request.version,
        client_id=request.client_id or "",
        client_host=client_host(request),
    )

    def join(shard: GroupShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        return shard.join(joiner, reply_to, now_ms)

    node.group_coordinator.submit(request, call.group_id, join, refuse=refuse, now_ms=now_ms)


def _refuse(call: JoinGroupRequest, settings: GroupSettings) -> ErrorCode:
    if not call.group_id:
        return ErrorCode.INVALID_GROUP_ID
    if call.session_timeout_ms < settings.session_timeout_min_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    if call.session_timeout_ms > settings.session_timeout_max_ms:
        return ErrorCode.INVALID_SESSION_TIMEOUT
    return ErrorCode.NONE


def client_host(request: Request) -> str:
    """The address as Kafka writes it down: a Java address without a name."""
    return "" if request.connection is None else f"/{request.connection.peer}"
