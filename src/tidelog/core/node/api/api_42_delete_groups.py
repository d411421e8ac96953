"""DeleteGroups (api key 42), versions 0 to 2: empty groups and their offsets, each by its own
coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_42_delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from tidelog.core.groups.group_shard import GroupShard
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 42
VERSIONS = range(3)
WAITS_FOR_METADATA = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(DeleteGroupsRequest)
    node.group_coordinator.submit_many(
        request,
        list(dict.fromkeys(call.groups_names)),
        _delete,
        refuse=_result,
        combine=lambda results: DeleteGroupsResponse(results=results),
        now_ms=now_ms,
    )


def _delete(shard: GroupShard, group_id: str, reply_to: ReplyTo, _now_ms: int) -> Outcome:
    error = shard.refuse_deletion(group_id)
    outcome = Outcome(replies=[(reply_to, _result(group_id, error))])
    if error is ErrorCode.NONE:
        outcome.records += shard.delete_group(group_id)
    return outcome


def _result(group_id: str, error: ErrorCode) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=error)
