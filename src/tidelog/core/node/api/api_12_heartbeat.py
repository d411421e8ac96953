"""Heartbeat (api key 12), versions 0 to 4.

Renews the member's session; REBALANCE_IN_PROGRESS tells it to join again. While the group is being
loaded nobody knows better than the member, which is answered that all is well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest, HeartbeatResponse

if TYPE_CHECKING:
    from tidelog.core.groups.group_shard import GroupShard
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 12
VERSIONS = range(5)
WAITS_FOR_METADATA = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(HeartbeatRequest)
    if not call.group_id:
        request.answer(HeartbeatResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        return

    def beat(shard: GroupShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        return shard.heartbeat(call, reply_to, now_ms)

    node.group_coordinator.submit(request, call.group_id, beat, refuse=refuse, now_ms=now_ms)


def refuse(error: ErrorCode) -> HeartbeatResponse:
    is_loading = error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    return HeartbeatResponse(error_code=ErrorCode.NONE if is_loading else error)
