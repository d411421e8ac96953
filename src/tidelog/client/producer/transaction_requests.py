"""Requests of a transactional producer, built from plain values in the versions of its protocol."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tidelog.client.group.offset_requests import ConsumerGroupMetadata, OffsetAndMetadata
from tidelog.client.producer.config import TransactionProtocol
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition
from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.core.wire.messages.api_22_init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from tidelog.core.wire.messages.api_25_add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest, EndTxnResponse
from tidelog.core.wire.messages.api_28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import NO_LEADER_EPOCH

TRANSACTION_VERSION: Final = "transaction.version"
"""The feature whose finalized level decides about the protocol."""

VERSIONS: Final[dict[TransactionProtocol, dict[type[Message], range]]] = {
    TransactionProtocol.CLASSIC: {
        ProduceRequest: range(3, 12),
        # From the version that gives the next producer epoch to whoever has the last one.
        InitProducerIdRequest: range(3, 6),
        AddPartitionsToTxnRequest: range(4),
        AddOffsetsToTxnRequest: range(5),
        # From the version that names the member of the group.
        TxnOffsetCommitRequest: range(3, 5),
        EndTxnRequest: range(5),
    },
    TransactionProtocol.VERSION_2: {
        ProduceRequest: range(12, 14),
        InitProducerIdRequest: range(3, 6),
        TxnOffsetCommitRequest: range(5, 6),
        EndTxnRequest: range(5, 6),
    },
}


def init_producer_id(
    transactional_id: str, identity: ProducerIdAndEpoch | None, *, timeout_ms: int
) -> InitProducerIdRequest:
    """A new identity that fences all before it, or the next producer epoch of this one."""
    request = InitProducerIdRequest(
        transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
    )
    if identity is not None:
        request.producer_id, request.producer_epoch = identity
    return request


def add_partitions(
    transactional_id: str, identity: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
) -> AddPartitionsToTxnRequest:
    topics: dict[str, AddPartitionsToTxnTopic] = {}
    for each in sorted(partitions):
        topic = topics.setdefault(each.topic, AddPartitionsToTxnTopic(name=each.topic))
        topic.partitions.append(each.index)
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=transactional_id,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.producer_epoch,
        v3_and_below_topics=list(topics.values()),
    )


def add_offsets(
    transactional_id: str, identity: ProducerIdAndEpoch, group_id: str
) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        group_id=group_id,
    )


def commit_offsets(
    transactional_id: str,
    identity: ProducerIdAndEpoch,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    group: ConsumerGroupMetadata,
) -> TxnOffsetCommitRequest:
    topics: dict[str, TxnOffsetCommitRequestTopic] = {}
    for name, each in sorted(offsets.items()):
        topic = topics.setdefault(name.topic, TxnOffsetCommitRequestTopic(name=name.topic))
        topic.partitions.append(
            TxnOffsetCommitRequestPartition(
                partition_index=name.index,
                committed_offset=each.offset,
                committed_leader_epoch=(
                    NO_LEADER_EPOCH if each.leader_epoch is None else each.leader_epoch
                ),
                committed_metadata=each.metadata,
            )
        )
    return TxnOffsetCommitRequest(
        transactional_id=transactional_id,
        group_id=group.group_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        generation_id=group.generation_id,
        member_id=group.member_id,
        group_instance_id=group.group_instance_id,
        topics=list(topics.values()),
    )


def end_transaction(
    transactional_id: str, identity: ProducerIdAndEpoch, *, is_commit: bool
) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=transactional_id,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        committed=is_commit,
    )


def next_identity(answer: InitProducerIdResponse | EndTxnResponse) -> ProducerIdAndEpoch | None:
    """What an answer gives for the next transaction; None where it gives nothing."""
    if answer.producer_id < 0:
        return None
    return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)


def error_codes(answer: Message) -> Iterable[ErrorCode]:
    """Every error code of an answer."""
    return [ErrorCode.from_wire(code) for code in _CODES_OF[type(answer)](answer)]


_CODES_OF: dict[type[Message], Callable[[Any], Iterable[int]]] = {
    InitProducerIdResponse: lambda answer: (answer.error_code,),
    AddPartitionsToTxnResponse: lambda answer: (
        each.partition_error_code
        for topic in answer.results_by_topic_v3_and_below
        for each in topic.results_by_partition
    ),
    AddOffsetsToTxnResponse: lambda answer: (answer.error_code,),
    EndTxnResponse: lambda answer: (answer.error_code,),
    TxnOffsetCommitResponse: lambda answer: (
        each.error_code for topic in answer.topics for each in topic.partitions
    ),
}
