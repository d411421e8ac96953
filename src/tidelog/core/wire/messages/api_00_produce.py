"""Produce (api key 0): record batches for partitions, and where they went.

Versions 9 and up are flexible, 10 names the new leader, 13 names topics by id. Versions 0 to 2
carry old record formats and are not known here, though ApiVersions must advertise them.
"""

from __future__ import annotations

from tidelog.core.wire.schema import (
    Message,
    Struct,
    array,
    int16,
    int32,
    int64,
    nested,
    record_bytes,
    string,
    uuid,
)


class PartitionProduceData(Struct):
    """The batches for one partition."""

    index: int = int32()
    records: bytes | memoryview | None = record_bytes(nullable="0+", default=None)


class TopicProduceData(Struct):
    """The partitions of one topic."""

    name: str = string("3-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partition_data: list[PartitionProduceData] = array(PartitionProduceData)


class ProduceRequest(Message, api_key=0, versions="3-13", flexible_from=9):
    """What a producer wants to be written, and how sure it wants to be."""

    transactional_id: str | None = string(nullable="0+", default=None)
    acks: int = int16()
    timeout_ms: int = int32()
    topic_data: list[TopicProduceData] = array(TopicProduceData)


class BatchIndexAndErrorMessage(Struct):
    """A record that made its batch be refused."""

    batch_index: int = int32()
    batch_index_error_message: str | None = string(nullable="0+", default=None)


class LeaderIdAndEpoch(Struct):
    """Who leads now, for a producer that asked the wrong broker."""

    leader_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)


class PartitionProduceResponse(Struct):
    """Where the batches of one partition went, or why not."""

    index: int = int32()
    error_code: int = int16()
    base_offset: int = int64()
    log_append_time_ms: int = int64(default=-1, ignorable=True)
    log_start_offset: int = int64("5+", default=-1, ignorable=True)
    record_errors: list[BatchIndexAndErrorMessage] = array(
        BatchIndexAndErrorMessage, "8+", ignorable=True
    )
    error_message: str | None = string("8+", nullable="8+", default=None, ignorable=True)
    current_leader: LeaderIdAndEpoch = nested(LeaderIdAndEpoch, "10+", tag=0)


class TopicProduceResponse(Struct):
    """The outcome for one topic."""

    name: str = string("3-12", ignorable=True)
    topic_id: bytes = uuid("13+", ignorable=True)
    partition_responses: list[PartitionProduceResponse] = array(PartitionProduceResponse)


class NodeEndpoint(Struct):
    """Where to reach a leader named above."""

    node_id: int = int32()
    host: str = string()
    port: int = int32()
    rack: str | None = string(nullable="0+", default=None)


class ProduceResponse(Message, api_key=0, versions="3-13", flexible_from=9):
    """What became of each partition."""

    responses: list[TopicProduceResponse] = array(TopicProduceResponse)
    throttle_time_ms: int = int32(ignorable=True)
    node_endpoints: list[NodeEndpoint] = array(NodeEndpoint, "10+", tag=0)
