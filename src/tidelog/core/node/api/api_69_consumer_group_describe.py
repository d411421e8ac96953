"""ConsumerGroupDescribe (api key 69), versions 0 and 1: KIP-848 groups, each by its own
coordinator."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.consumer_descriptions import describe_consumer_group
from tidelog.core.metadata.features import GROUP_VERSION
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.metadata.cluster_view import ALL_GROUP_OPERATIONS
from tidelog.core.wire.messages.api_69_consumer_group_describe import (
    ConsumerGroupDescribedGroup,
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
)

if TYPE_CHECKING:
    from tidelog.core.groups.group_shard import GroupShard
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 69
VERSIONS = range(2)
WAITS_FOR_METADATA = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(ConsumerGroupDescribeRequest)
    if not node.image.features.get(GROUP_VERSION):
        groups = [_refuse(group_id, ErrorCode.UNSUPPORTED_VERSION) for group_id in call.group_ids]
        request.answer(ConsumerGroupDescribeResponse(groups=groups))
        return

    def describe(shard: GroupShard, group_id: str, reply_to: ReplyTo, _now_ms: int) -> Outcome:
        group = shard.consumer.get(group_id)
        if not group_id:
            described = _refuse(group_id, ErrorCode.INVALID_GROUP_ID)
        elif group is None:
            described = _refuse(group_id, ErrorCode.GROUP_ID_NOT_FOUND)
            is_classic = group_id in shard.classic
            described.error_message = (
                f"Group {group_id} is not a consumer group."
                if is_classic
                else f"Group {group_id} not found."
            )
        else:
            described = describe_consumer_group(group, shard.topics)
            if call.include_authorized_operations:
                described.authorized_operations = ALL_GROUP_OPERATIONS
        return Outcome(replies=[(reply_to, described)])

    node.group_coordinator.submit_many(
        request,
        call.group_ids,
        describe,
        refuse=_refuse,
        combine=lambda groups: ConsumerGroupDescribeResponse(groups=groups),
        now_ms=now_ms,
    )


def _refuse(group_id: str, error: ErrorCode) -> ConsumerGroupDescribedGroup:
    return ConsumerGroupDescribedGroup(group_id=group_id, error_code=error)
