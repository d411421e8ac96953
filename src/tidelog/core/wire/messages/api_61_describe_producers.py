"""DescribeProducers (api key 61): the producer states that a partition remembers."""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int16, int32, int64, string


class TopicRequest(Struct):
    """The partitions of one topic."""

    name: str = string()
    partition_indexes: list[int] = array(int32)


class DescribeProducersRequest(Message, api_key=61, versions="0", flexible_from=0):
    """Partitions whose producers are to be described."""

    topics: list[TopicRequest] = array(TopicRequest)


class ProducerState(Struct):
    """What a partition remembers of one producer; -1 where it knows nothing."""

    producer_id: int = int64()
    producer_epoch: int = int32()
    last_sequence: int = int32(default=-1)
    last_timestamp: int = int64(default=-1)
    coordinator_epoch: int = int32()
    current_txn_start_offset: int = int64(default=-1)


class PartitionResponse(Struct):
    """The producers of one partition."""

    partition_index: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None)
    active_producers: list[ProducerState] = array(ProducerState)


class TopicResponse(Struct):
    """The outcome for one topic."""

    name: str = string()
    partitions: list[PartitionResponse] = array(PartitionResponse)


class DescribeProducersResponse(Message, api_key=61, versions="0", flexible_from=0):
    """The producers that are remembered."""

    throttle_time_ms: int = int32()
    topics: list[TopicResponse] = array(TopicResponse)
