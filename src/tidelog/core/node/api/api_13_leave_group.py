"""LeaveGroup (api key 13), versions 0 to 5.

Versions below 3 name one member, and its outcome is that of the whole request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_13_leave_group import (
    LeaveGroupRequest,
    LeaveGroupRequestMember,
    LeaveGroupResponse,
)

if TYPE_CHECKING:
    from tidelog.core.groups.group_shard import GroupShard
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 13
VERSIONS = range(6)
WAITS_FOR_METADATA = True

_FIRST_VERSION_WITH_MANY_MEMBERS = 3


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(LeaveGroupRequest)
    if not call.group_id:
        request.answer(LeaveGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        return
    is_for_one = request.version < _FIRST_VERSION_WITH_MANY_MEMBERS
    if is_for_one:
        call.members = [LeaveGroupRequestMember(member_id=call.member_id)]

    def leave(shard: GroupShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        outcome = shard.leave(call, reply_to, now_ms)
        if is_for_one:
            for caller, answer in outcome.replies:
                if caller is reply_to:
                    _put_on_top(answer)
        return outcome

    node.group_coordinator.submit(request, call.group_id, leave, refuse=_refuse, now_ms=now_ms)


def _put_on_top(answer: object) -> None:
    """Old versions have no list of members."""
    assert isinstance(answer, LeaveGroupResponse), "a leave is answered at once"
    (member,) = answer.members
    answer.error_code, answer.members = member.error_code, []


def _refuse(error: ErrorCode) -> LeaveGroupResponse:
    return LeaveGroupResponse(error_code=error)
