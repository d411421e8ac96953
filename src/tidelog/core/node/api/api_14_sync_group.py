"""SyncGroup (api key 14), versions 0 to 5.

From version 5 on a member must say which protocol it believes in. The answer waits for the
leader's assignment.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_14_sync_group import SyncGroupRequest, SyncGroupResponse

if TYPE_CHECKING:
    from tidelog.core.groups.group_shard import GroupShard
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 14
VERSIONS = range(6)
WAITS_FOR_METADATA = True

_FIRST_VERSION_WITH_PROTOCOL = 5


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(SyncGroupRequest)
    error = _refuse_call(call, request.version)
    if error is not ErrorCode.NONE:
        request.answer(_refuse(error))
        return
    for assignment in call.assignments:  # the frame is gone when a held request gets its turn
        assignment.assignment = bytes(assignment.assignment)

    def sync(shard: GroupShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        return shard.sync(call, reply_to, now_ms)

    node.group_coordinator.submit(request, call.group_id, sync, refuse=_refuse, now_ms=now_ms)


def _refuse_call(call: SyncGroupRequest, version: int) -> ErrorCode:
    has_protocol = call.protocol_type is not None and call.protocol_name is not None
    if version >= _FIRST_VERSION_WITH_PROTOCOL and not has_protocol:
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    return ErrorCode.NONE if call.group_id else ErrorCode.INVALID_GROUP_ID


def _refuse(error: ErrorCode) -> SyncGroupResponse:
    return SyncGroupResponse(error_code=error)
