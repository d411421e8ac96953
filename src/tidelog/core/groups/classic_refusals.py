"""Why a member of a classic group is refused: Kafka's codes, in Kafka's order."""

from __future__ import annotations

from tidelog.core.groups.classic_group import ClassicGroup, ClassicState
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_12_heartbeat import HeartbeatRequest
from tidelog.core.wire.messages.api_14_sync_group import SyncGroupRequest


def refuse_sync(group: ClassicGroup | None, request: SyncGroupRequest) -> ErrorCode:
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.refuse_member(request.member_id, request.group_instance_id)
    if error is not ErrorCode.NONE:
        return error
    if request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    if _differ(request.protocol_type, group.protocol_type):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if _differ(request.protocol_name, group.protocol):
        return ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    if group.state is ClassicState.PREPARING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE


def _differ(claimed: str | None, ours: str | None) -> bool:
    """Whoever does not know the protocol does not contradict."""
    return claimed is not None and ours is not None and claimed != ours


def refuse_heartbeat(group: ClassicGroup | None, request: HeartbeatRequest) -> ErrorCode:
    if group is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    error = group.refuse_member(request.member_id, request.group_instance_id)
    if error is ErrorCode.NONE and request.generation_id != group.generation:
        return ErrorCode.ILLEGAL_GENERATION
    return error


def refuse_commit(
    group: ClassicGroup,
    member_id: str,
    group_instance_id: str | None,
    generation_id: int,
    *,
    is_transactional: bool,
) -> ErrorCode:
    is_empty = group.state is ClassicState.EMPTY
    if generation_id < 0 and is_empty:
        return ErrorCode.NONE
    if generation_id >= 0 or member_id or group_instance_id is not None:
        error = group.refuse_member(member_id, group_instance_id)
        if error is not ErrorCode.NONE:
            return error
        if generation_id != group.generation:
            return ErrorCode.ILLEGAL_GENERATION
    elif not is_transactional and not is_empty:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if not is_transactional and group.state is ClassicState.COMPLETING_REBALANCE:
        return ErrorCode.REBALANCE_IN_PROGRESS
    return ErrorCode.NONE
