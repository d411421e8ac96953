"""The requests of a membership: JoinGroup, SyncGroup and LeaveGroup from plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.client.group.assignors import SubscribedMember
from tidelog.client.group.config import GroupConfig
from tidelog.client.group.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    read_subscription,
    write_assignment,
    write_subscription,
)
from tidelog.client.group.offset_commits import GroupIdentity
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.codec import MalformedMessage
from tidelog.core.wire.messages.api_11_join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from tidelog.core.wire.messages.api_13_leave_group import (
    LeaveGroupRequest,
    LeaveGroupRequestMember,
)
from tidelog.core.wire.messages.api_14_sync_group import (
    SyncGroupRequest,
    SyncGroupRequestAssignment,
)


def join_request(config: GroupConfig, topics: Iterable[str], *, member_id: str) -> JoinGroupRequest:
    """The same subscription for every assignor that the member knows, the best one first."""
    metadata = write_subscription(topics)
    return JoinGroupRequest(
        group_id=config.group_id,
        session_timeout_ms=config.session_timeout_ms,
        rebalance_timeout_ms=config.rebalance_timeout_ms,
        member_id=member_id,
        group_instance_id=config.group_instance_id,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocols=[
            JoinGroupRequestProtocol(name=name, metadata=metadata) for name in config.assignors
        ],
    )


def subscribed_members(answer: JoinGroupResponse) -> tuple[SubscribedMember, ...]:
    """Everybody's topics, as the leader is told; what cannot be read subscribes to nothing."""
    members = []
    for each in answer.members:
        try:
            topics = read_subscription(each.metadata)
        except MalformedMessage:
            topics = ()
        members.append(SubscribedMember(each.member_id, each.group_instance_id, topics))
    return tuple(members)


def sync_request(
    group_id: str,
    identity: GroupIdentity,
    assignor: str,
    assignments: Mapping[str, Iterable[TopicPartition]],
) -> SyncGroupRequest:
    """Assignments by member id; only the leader has any."""
    return SyncGroupRequest(
        group_id=group_id,
        generation_id=identity.generation_id,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        protocol_type=CONSUMER_PROTOCOL_TYPE,
        protocol_name=assignor,
        assignments=[
            SyncGroupRequestAssignment(member_id=member_id, assignment=write_assignment(partitions))
            for member_id, partitions in sorted(assignments.items())
        ],
    )


def leave_request(group_id: str, member_id: str) -> LeaveGroupRequest:
    member = LeaveGroupRequestMember(member_id=member_id, reason="the consumer is being closed")
    return LeaveGroupRequest(group_id=group_id, members=[member])
