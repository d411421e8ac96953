"""ConsumerGroupHeartbeat (api key 68): the one request of a member of a KIP-848 group.

It joins, keeps the session, acknowledges what was revoked, and leaves. Version 1 has subscriptions
by regular expression, and members bring their own ids.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int16, int32, nested, string, uuid


class ConsumerGroupHeartbeatTopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: bytes = uuid()
    partitions: list[int] = array(int32)


class ConsumerGroupHeartbeatRequest(Message, api_key=68, versions="0-1", flexible_from=0):
    """What has changed about a member; null or -1 is what has not."""

    group_id: str = string()
    member_id: str = string()
    member_epoch: int = int32()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    rebalance_timeout_ms: int = int32(default=-1)
    subscribed_topic_names: list[str] | None = array(string, nullable="0+", default=None)
    subscribed_topic_regex: str | None = string("1+", nullable="1+", default=None)
    server_assignor: str | None = string(nullable="0+", default=None)
    topic_partitions: list[ConsumerGroupHeartbeatTopicPartitions] | None = array(
        ConsumerGroupHeartbeatTopicPartitions, nullable="0+", default=None
    )


class ConsumerGroupHeartbeatAssignment(Struct):
    """What the member may use at once."""

    topic_partitions: list[ConsumerGroupHeartbeatTopicPartitions] = array(
        ConsumerGroupHeartbeatTopicPartitions
    )


class ConsumerGroupHeartbeatResponse(Message, api_key=68, versions="0-1", flexible_from=0):
    """The member's epoch, and its assignment where that is news."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    member_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    heartbeat_interval_ms: int = int32()
    assignment: ConsumerGroupHeartbeatAssignment | None = nested(
        ConsumerGroupHeartbeatAssignment, nullable="0+", default=None
    )
