"""DescribeTopicPartitions (api key 75): partitions page by page, with eligible leaders."""

from __future__ import annotations

from tidelog.core.wire.schema import (
    Message,
    Struct,
    array,
    boolean,
    int16,
    int32,
    nested,
    string,
    uuid,
)


class TopicRequest(Struct):
    """A topic by name."""

    name: str = string()


class Cursor(Struct):
    """The partition with which the next page begins."""

    topic_name: str = string()
    partition_index: int = int32()


class DescribeTopicPartitionsRequest(Message, api_key=75, versions="0", flexible_from=0):
    """Topics to be described, and where to go on."""

    topics: list[TopicRequest] = array(TopicRequest)
    response_partition_limit: int = int32(default=2000)
    cursor: Cursor | None = nested(Cursor, nullable="0+", default=None)


class DescribeTopicPartitionsResponsePartition(Struct):
    """One partition, its replicas and its eligible leaders."""

    error_code: int = int16()
    partition_index: int = int32()
    leader_id: int = int32()
    leader_epoch: int = int32(default=-1, ignorable=True)
    replica_nodes: list[int] = array(int32)
    isr_nodes: list[int] = array(int32)
    eligible_leader_replicas: list[int] | None = array(int32, nullable="0+", default=None)
    last_known_elr: list[int] | None = array(int32, nullable="0+", default=None)
    offline_replicas: list[int] = array(int32, ignorable=True)


class DescribeTopicPartitionsResponseTopic(Struct):
    """A topic and the partitions of this page."""

    error_code: int = int16()
    name: str | None = string(nullable="0+")
    topic_id: bytes = uuid(ignorable=True)
    is_internal: bool = boolean(ignorable=True)
    partitions: list[DescribeTopicPartitionsResponsePartition] = array(
        DescribeTopicPartitionsResponsePartition
    )
    topic_authorized_operations: int = int32(default=-(2**31))


class DescribeTopicPartitionsResponse(Message, api_key=75, versions="0", flexible_from=0):
    """One page, and the cursor of the next."""

    throttle_time_ms: int = int32(ignorable=True)
    topics: list[DescribeTopicPartitionsResponseTopic] = array(DescribeTopicPartitionsResponseTopic)
    next_cursor: Cursor | None = nested(Cursor, nullable="0+", default=None)
