"""ConsumerGroupDescribe (api key 69): state, epochs and members of KIP-848 groups.

Version 1 says of each member which protocol it speaks.
"""

from __future__ import annotations

from tidelog.core.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int8,
    int16,
    int32,
    nested,
    string,
    uuid,
)


class ConsumerGroupDescribeRequest(Message, api_key=69, versions="0-1", flexible_from=0):
    """What about these groups?"""

    group_ids: list[str] = array(string)
    include_authorized_operations: bool = boolean()


class ConsumerGroupTopicPartitions(Struct):
    """Partitions of one topic."""

    topic_id: bytes = uuid()
    topic_name: str = string()
    partitions: list[int] = array(int32)


class ConsumerGroupAssignment(Struct):
    """What a member has, or should have."""

    topic_partitions: list[ConsumerGroupTopicPartitions] = array(ConsumerGroupTopicPartitions)


class ConsumerGroupDescribedMember(Struct):
    """One member."""

    member_id: str = string()
    instance_id: str | None = string(nullable="0+", default=None)
    rack_id: str | None = string(nullable="0+", default=None)
    member_epoch: int = int32()
    client_id: str = string()
    client_host: str = string()
    subscribed_topic_names: list[str] = array(string)
    subscribed_topic_regex: str | None = string(nullable="0+", default=None)
    assignment: ConsumerGroupAssignment = nested(ConsumerGroupAssignment)
    target_assignment: ConsumerGroupAssignment = nested(ConsumerGroupAssignment)
    member_type: int = int8("1+", default=-1, ignorable=True)


class ConsumerGroupDescribedGroup(Struct):
    """One group."""

    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    group_id: str = string()
    group_state: str = string()
    group_epoch: int = int32()
    assignment_epoch: int = int32()
    assignor_name: str = string()
    members: list[ConsumerGroupDescribedMember] = array(ConsumerGroupDescribedMember)
    authorized_operations: int = int32(default=-(2**31))


class ConsumerGroupDescribeResponse(Message, api_key=69, versions="0-1", flexible_from=0):
    """The groups."""

    throttle_time_ms: int = int32()
    groups: list[ConsumerGroupDescribedGroup] = array(ConsumerGroupDescribedGroup)
