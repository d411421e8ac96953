"""DescribeGroups (api key 15), versions 0 to 6.

Each group is described by its own coordinator; the answer has them in the order of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.classic_descriptions import describe_group
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.metadata.cluster_view import ALL_GROUP_OPERATIONS
from tidelog.core.wire.messages.api_15_describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from tidelog.core.groups.group_shard import GroupShard
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 15
VERSIONS = range(7)
WAITS_FOR_METADATA = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(DescribeGroupsRequest)
    version = request.version

    def describe(shard: GroupShard, group_id: str, reply_to: ReplyTo, _now_ms: int) -> Outcome:
        described = describe_group(shard.classic, group_id, version=version)
        if group_id in shard.consumer and described.error_message is not None:
            described.error_message = f"Group {group_id} is not a classic group."
        if call.include_authorized_operations and described.error_code == ErrorCode.NONE:
            described.authorized_operations = ALL_GROUP_OPERATIONS
        return Outcome(replies=[(reply_to, described)])

    node.group_coordinator.submit_many(
        request,
        call.groups,
        describe,
        refuse=_refuse,
        combine=lambda groups: DescribeGroupsResponse(groups=groups),
        now_ms=now_ms,
    )


def _refuse(group_id: str, error: ErrorCode) -> DescribedGroup:
    return DescribedGroup(group_id=group_id, error_code=error)
