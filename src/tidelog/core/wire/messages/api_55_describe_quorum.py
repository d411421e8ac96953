"""DescribeQuorum (api key 55): who leads the metadata quorum and how far each replica is.

Version 1 says when each replica last fetched and was last caught up, 2 brings messages, directory
ids and the addresses of the nodes.
"""

from __future__ import annotations

from tidelog.core.wire.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    string,
    uint16,
    uuid,
)


class DescribeQuorumRequestPartition(Struct):
    """The partition of the metadata topic."""

    partition_index: int = int32()


class DescribeQuorumRequestTopic(Struct):
    """The metadata topic."""

    topic_name: str = string()
    partitions: list[DescribeQuorumRequestPartition] = array(DescribeQuorumRequestPartition)


class DescribeQuorumRequest(Message, api_key=55, versions="0-2", flexible_from=0):
    """How is the quorum?"""

    topics: list[DescribeQuorumRequestTopic] = array(DescribeQuorumRequestTopic)


class ReplicaState(Struct):
    """How far one replica is; -1 for what the leader does not know."""

    replica_id: int = int32()
    replica_directory_id: bytes = uuid("2+")
    log_end_offset: int = int64()
    last_fetch_timestamp: int = int64("1+", default=-1, ignorable=True)
    last_caught_up_timestamp: int = int64("1+", default=-1, ignorable=True)


class DescribeQuorumResponsePartition(Struct):
    """The leader, voters and observers of the metadata log."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    leader_id: int = int32()
    leader_epoch: int = int32()
    high_watermark: int = int64()
    current_voters: list[ReplicaState] = array(ReplicaState)
    observers: list[ReplicaState] = array(ReplicaState)


class DescribeQuorumResponseTopic(Struct):
    """The metadata topic."""

    topic_name: str = string()
    partitions: list[DescribeQuorumResponsePartition] = array(DescribeQuorumResponsePartition)


class Listener(Struct):
    """Where a node can be reached."""

    name: str = string()
    host: str = string()
    port: int = uint16()


class Node(Struct):
    """A voter and its listeners."""

    node_id: int = int32()
    listeners: list[Listener] = array(Listener)


class DescribeQuorumResponse(Message, api_key=55, versions="0-2", flexible_from=0):
    """How the quorum is, as its leader sees it."""

    error_code: int = int16()
    error_message: str | None = string("2+", nullable="2+", ignorable=True)
    topics: list[DescribeQuorumResponseTopic] = array(DescribeQuorumResponseTopic)
    nodes: list[Node] = array(Node, "2+")
