"""ConsumerGroupHeartbeat (api key 68), versions 0 and 1.

What is wrong whatever the group is like is refused here, the rest by the group's coordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.consumer_member import (
    JOIN_EPOCH,
    LEAVE_EPOCH,
    LEAVE_STATIC_EPOCH,
    NO_TIMEOUT,
)
from tidelog.core.groups.member_call import HeartbeatCaller
from tidelog.core.groups.partition_assignors import ASSIGNORS
from tidelog.core.metadata.features import GROUP_VERSION
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api.api_11_join_group import client_host
from tidelog.core.wire.messages.api_68_consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)

if TYPE_CHECKING:
    from tidelog.core.groups.group_shard import GroupShard
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 68
VERSIONS = range(2)
WAITS_FOR_METADATA = True

_FIRST_VERSION_WITH_OWN_MEMBER_ID = 1


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(ConsumerGroupHeartbeatRequest)
    if not node.image.features.get(GROUP_VERSION):
        request.answer(refuse(ErrorCode.UNSUPPORTED_VERSION))
        return
    wrong = _refuse_request(call, request.version)
    if wrong is not None:
        request.answer(wrong)
        return
    caller = HeartbeatCaller(client_id=request.client_id or "", client_host=client_host(request))

    def beat(shard: GroupShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        return shard.consumer_heartbeat(call, caller, reply_to, now_ms)

    node.group_coordinator.submit(request, call.group_id, beat, refuse=refuse, now_ms=now_ms)


def refuse(error: ErrorCode) -> ConsumerGroupHeartbeatResponse:
    return ConsumerGroupHeartbeatResponse(error_code=error)


def _refuse_request(
    call: ConsumerGroupHeartbeatRequest, version: int
) -> ConsumerGroupHeartbeatResponse | None:
    message = _invalid(call, version)
    if message is not None:
        error = ErrorCode.INVALID_REQUEST
        return ConsumerGroupHeartbeatResponse(error_code=error, error_message=message)
    if call.server_assignor is not None and call.server_assignor not in ASSIGNORS:
        return ConsumerGroupHeartbeatResponse(
            error_code=ErrorCode.UNSUPPORTED_ASSIGNOR,
            error_message=f"ServerAssignor {call.server_assignor} is not supported. "
            f"Supported assignors: {', '.join(ASSIGNORS)}.",
        )
    return None


def _invalid(call: ConsumerGroupHeartbeatRequest, version: int) -> str | None:
    """Kafka's sentence about the first thing that is wrong."""
    member_epoch = call.member_epoch
    has_id = (
        version >= _FIRST_VERSION_WITH_OWN_MEMBER_ID
        or member_epoch > 0
        or member_epoch == LEAVE_EPOCH
    )
    joins = member_epoch == JOIN_EPOCH
    is_unsubscribed = call.subscribed_topic_names is None and call.subscribed_topic_regex is None
    subscription = "Either SubscribedTopicNames or SubscribedTopicRegex must be non-null"
    checks = (
        (has_id and not call.member_id.strip(), "MemberId can't be empty."),
        (not call.group_id.strip(), "GroupId can't be empty."),
        (_is_blank(call.instance_id), "InstanceId can't be empty."),
        (_is_blank(call.rack_id), "RackId can't be empty."),
        (
            joins and call.rebalance_timeout_ms == NO_TIMEOUT,
            "RebalanceTimeoutMs must be provided in first request.",
        ),
        (
            joins and call.topic_partitions != [],
            "TopicPartitions must be empty when (re-)joining.",
        ),
        (
            joins and is_unsubscribed,
            f"{subscription} when (re-)joining.",
        ),
        (
            member_epoch == LEAVE_STATIC_EPOCH and call.instance_id is None,
            "InstanceId can't be null.",
        ),
        (member_epoch < LEAVE_STATIC_EPOCH, "MemberEpoch is invalid."),
    )
    return next((message for is_wrong, message in checks if is_wrong), None)


def _is_blank(text: str | None) -> bool:
    return text is not None and not text.strip()
