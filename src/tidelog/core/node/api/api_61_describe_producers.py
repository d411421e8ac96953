"""DescribeProducers (api key 61), version 0.

Describes what a partition remembers of its producers: epoch, last sequence, last write, and where
an open transaction began. Any replica answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import refuse_topic_name
from tidelog.core.node.replicas.partition_lookup import find_hosted
from tidelog.core.storage.producers import ProducerStateEntry, sequence_before
from tidelog.core.wire.messages.api_61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
    TopicResponse,
)
from tidelog.core.wire.sentinels import NO_COORDINATOR_EPOCH, NO_SEQUENCE, UNKNOWN_OFFSET

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 61
VERSIONS = range(1)
WAITS_FOR_METADATA = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(DescribeProducersRequest)
    topics = [
        TopicResponse(name=topic.name, partitions=_partitions(node, topic)) for topic in call.topics
    ]
    request.answer(DescribeProducersResponse(topics=topics))


def _partitions(node: Node, topic: TopicRequest) -> list[PartitionResponse]:
    error, reason = _refuse_topic(node, topic.name)
    if error != ErrorCode.NONE:
        return [
            PartitionResponse(partition_index=index, error_code=error, error_message=reason)
            for index in topic.partition_indexes
        ]
    return [_partition(node, topic.name, index) for index in topic.partition_indexes]


def _refuse_topic(node: Node, name: str) -> tuple[ErrorCode, str | None]:
    reason = refuse_topic_name(name)
    if reason is not None:
        return ErrorCode.INVALID_TOPIC_EXCEPTION, reason
    if name not in node.image.topics:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "no topic has this name"
    return ErrorCode.NONE, None


def _partition(node: Node, topic: str, index: int) -> PartitionResponse:
    partition = find_hosted(node, topic, index)
    if isinstance(partition, ErrorCode):
        return PartitionResponse(partition_index=index, error_code=partition)
    producers = partition.log.producers.by_id
    return PartitionResponse(
        partition_index=index,
        active_producers=[_state(producers[producer_id]) for producer_id in sorted(producers)],
    )


def _state(producer: ProducerStateEntry) -> ProducerState:
    """Absent values are None in core and -1 on the wire."""
    last_sequence, coordinator_epoch = NO_SEQUENCE, producer.coordinator_epoch
    if producer.batches:
        last_sequence = sequence_before(producer.batches[-1].next_sequence, 1)
    first_offset = producer.transaction_first_offset
    return ProducerState(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        last_sequence=last_sequence,
        last_timestamp=producer.timestamp_ms,
        coordinator_epoch=NO_COORDINATOR_EPOCH if coordinator_epoch is None else coordinator_epoch,
        current_txn_start_offset=UNKNOWN_OFFSET if first_offset is None else first_offset,
    )
