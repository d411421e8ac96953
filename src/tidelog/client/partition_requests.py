"""Requests about one partition, built from plain values, and the part of a response about it.

For those who speak the wire themselves and decide about every request: the lab's writers and
evidence, and tests. A topic may be given by name, by id or by both; the version decides what is
sent.
"""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_00_produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
)
from tidelog.core.wire.messages.api_02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from tidelog.core.wire.schema import ZERO_UUID, Message
from tidelog.core.wire.sentinels import ACKS_ALL, CONSUMER_REPLICA_ID, LATEST_TIMESTAMP

PARTITION_BYTES_MAX = 1 << 20
PRODUCE_TIMEOUT_MS = 60_000
TRANSACTION_TIMEOUT_MS = 60_000


def produce_request(
    topic: str,
    index: int,
    records: bytes | bytearray | None,
    *,
    topic_id: bytes = ZERO_UUID,
    acks: int = ACKS_ALL,
    timeout_ms: int = PRODUCE_TIMEOUT_MS,
) -> ProduceRequest:
    data = PartitionProduceData(index=index, records=None if records is None else bytes(records))
    by_topic = TopicProduceData(name=topic, topic_id=topic_id, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[by_topic])


def produce_answer(response: Message) -> PartitionProduceResponse:
    assert isinstance(response, ProduceResponse), response
    return response.responses[0].partition_responses[0]


def fetch_request(
    topic: str,
    index: int,
    offset: int,
    *,
    topic_id: bytes = ZERO_UUID,
    leader_epoch: int | None = None,
    partition_bytes_max: int = PARTITION_BYTES_MAX,
    bytes_max: int | None = None,
    wait_ms: int = 0,
) -> FetchRequest:
    """As a consumer; without a leader epoch whichever the broker leads in."""
    partition = FetchPartition(
        partition=index,
        fetch_offset=offset,
        current_leader_epoch=-1 if leader_epoch is None else leader_epoch,
        partition_max_bytes=partition_bytes_max,
    )
    by_topic = FetchTopic(topic=topic, topic_id=topic_id, partitions=[partition])
    request = FetchRequest(max_wait_ms=wait_ms, min_bytes=1, topics=[by_topic])
    if bytes_max is not None:
        request.max_bytes = bytes_max
    return request


def fetch_answer(response: Message) -> PartitionData:
    assert isinstance(response, FetchResponse), response
    assert response.error_code == ErrorCode.NONE, ErrorCode(response.error_code)
    return response.responses[0].partitions[0]


def list_offsets_request(
    topic: str,
    *indexes: int,
    replica_id: int = CONSUMER_REPLICA_ID,
    leader_epoch: int | None = None,
    timestamp_ms: int = LATEST_TIMESTAMP,
) -> ListOffsetsRequest:
    """As a consumer; with DEBUGGING_REPLICA_ID any replica answers with its own log end."""
    partitions = [
        ListOffsetsPartition(
            partition_index=index,
            current_leader_epoch=-1 if leader_epoch is None else leader_epoch,
            timestamp=timestamp_ms,
        )
        for index in indexes
    ]
    by_topic = ListOffsetsTopic(name=topic, partitions=partitions)
    return ListOffsetsRequest(replica_id=replica_id, topics=[by_topic])


def list_offsets_answer(response: Message) -> ListOffsetsPartitionResponse:
    """Of the first partition."""
    assert isinstance(response, ListOffsetsResponse), response
    return response.topics[0].partitions[0]


def init_producer_id_request(
    transaction_timeout_ms: int = TRANSACTION_TIMEOUT_MS,
) -> InitProducerIdRequest:
    """For an idempotent producer without transactions."""
    return InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=transaction_timeout_ms
    )
