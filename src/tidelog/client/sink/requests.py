"""Every request of the sink's protocol: which step it is, which node gets it, in which versions.

The highest versions are those of the classic transaction protocol, also on a cluster that offers
newer ones: see the package's first page. The functions below build one call each from what the sink
knows, and read answers into values.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tidelog.client.admin.configs import ResourceKind
from tidelog.client.admin.question import AnyNode, LeaderOf, TheBroker
from tidelog.client.connections import SOFTWARE_NAME, SOFTWARE_VERSION
from tidelog.client.sink.errors import MarkerUnreadable
from tidelog.client.sink.marker import SinkMarker, read_marker
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition
from tidelog.core.wire.messages import api_02_list_offsets as list_offsets
from tidelog.core.wire.messages import api_03_metadata as metadata
from tidelog.core.wire.messages import api_09_offset_fetch as offset_fetch
from tidelog.core.wire.messages import api_24_add_partitions_to_txn as add_partitions
from tidelog.core.wire.messages import api_28_txn_offset_commit as txn_offset_commit
from tidelog.core.wire.messages import api_32_describe_configs as describe_configs
from tidelog.core.wire.messages import api_61_describe_producers as describe_producers
from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.core.wire.messages.api_02_list_offsets import ListOffsetsRequest
from tidelog.core.wire.messages.api_03_metadata import MetadataRequest
from tidelog.core.wire.messages.api_09_offset_fetch import OffsetFetchRequest
from tidelog.core.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from tidelog.core.wire.messages.api_18_api_versions import ApiVersionsRequest
from tidelog.core.wire.messages.api_22_init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import AddPartitionsToTxnRequest
from tidelog.core.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest
from tidelog.core.wire.messages.api_28_txn_offset_commit import TxnOffsetCommitRequest
from tidelog.core.wire.messages.api_32_describe_configs import DescribeConfigsRequest
from tidelog.core.wire.messages.api_61_describe_producers import DescribeProducersRequest
from tidelog.core.wire.messages.api_65_describe_transactions import DescribeTransactionsRequest
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import CONSUMER_REPLICA_ID, LATEST_TIMESTAMP


class CoordinatorType(Enum):
    """What a coordinator coordinates, by the protocol's numbers."""

    GROUP = 0
    TRANSACTIONS = 1


class CoordinatorOf(NamedTuple):
    """The sink's own coordinator of this kind, wherever it is now."""

    kind: CoordinatorType


TRANSACTIONS = CoordinatorOf(CoordinatorType.TRANSACTIONS)
GROUP = CoordinatorOf(CoordinatorType.GROUP)

CallTarget = AnyNode | LeaderOf | TheBroker | CoordinatorOf


class SinkStep(Enum):
    """A step of the protocol; one API may serve several."""

    VERSIONS = "ask what the cluster speaks"
    CONFIGS = "read the brokers' settings"
    TOPICS = "look at the topics"
    FIND = "find a coordinator"
    IDENTIFY = "take the sink over"
    READ_MARKER = "read the marker"
    NEXT_EPOCH = "get a new producer epoch"
    END_OFFSETS = "read the end offsets"
    ADD_PARTITIONS = "add partitions to the transaction"
    PRODUCE = "write records"
    TRANSACTION = "look at the transaction"
    PRODUCERS = "look at the producers of a partition"
    ADD_OFFSETS = "add the marker to the transaction"
    MARK = "write the marker"
    COMMIT = "commit"
    ABORT = "abort"


class StepApi(NamedTuple):
    """The request of a step and the versions that it may have."""

    request: type[Message]
    version_min: int
    version_max: int


STEP_APIS: dict[SinkStep, StepApi] = {
    SinkStep.VERSIONS: StepApi(ApiVersionsRequest, 0, 4),
    SinkStep.CONFIGS: StepApi(DescribeConfigsRequest, 1, 4),
    SinkStep.TOPICS: StepApi(MetadataRequest, 4, 12),
    SinkStep.FIND: StepApi(FindCoordinatorRequest, 4, 5),
    SinkStep.IDENTIFY: StepApi(InitProducerIdRequest, 3, 5),
    SinkStep.READ_MARKER: StepApi(OffsetFetchRequest, 8, 9),
    SinkStep.NEXT_EPOCH: StepApi(InitProducerIdRequest, 3, 5),
    SinkStep.END_OFFSETS: StepApi(ListOffsetsRequest, 2, 9),
    SinkStep.ADD_PARTITIONS: StepApi(AddPartitionsToTxnRequest, 0, 3),
    SinkStep.PRODUCE: StepApi(ProduceRequest, 7, 11),
    SinkStep.TRANSACTION: StepApi(DescribeTransactionsRequest, 0, 0),
    SinkStep.PRODUCERS: StepApi(DescribeProducersRequest, 0, 0),
    SinkStep.ADD_OFFSETS: StepApi(AddOffsetsToTxnRequest, 0, 4),
    SinkStep.MARK: StepApi(TxnOffsetCommitRequest, 3, 4),
    SinkStep.COMMIT: StepApi(EndTxnRequest, 0, 4),
    SinkStep.ABORT: StepApi(EndTxnRequest, 0, 4),
}
assert set(STEP_APIS) == set(SinkStep)


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkCall:
    """One request to one node, at one step of the protocol."""

    step: SinkStep
    request: Message
    target: CallTarget
    is_resent: bool = True
    """False: a refusal that may be retried is reported after its pause, and the caller decides."""
    not_after_ms: int | None = None
    """After this time it is not sent any more: what it is based on would be too old."""
    timeout_ms: int | None = None
    """Its own, instead of what its conversation has left."""


class Pause(NamedTuple):
    """Do nothing until then."""

    until_ms: int


class StoredMarker(NamedTuple):
    """The marker, and the partition at whose offset it is committed."""

    partition: TopicPartition
    marker: SinkMarker


def versions_call() -> SinkCall:
    request = ApiVersionsRequest(
        client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
    )
    return SinkCall(step=SinkStep.VERSIONS, request=request, target=AnyNode())


def topics_call(topics: Iterable[str]) -> SinkCall:
    request = metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
    )
    return SinkCall(step=SinkStep.TOPICS, request=request, target=AnyNode())


def configs_call(broker_id: int, keys: Iterable[str]) -> SinkCall:
    resource = describe_configs.DescribeConfigsResource(
        resource_type=ResourceKind.BROKER,
        resource_name=str(broker_id),
        configuration_keys=list(keys),
    )
    request = describe_configs.DescribeConfigsRequest(resources=[resource])
    return SinkCall(step=SinkStep.CONFIGS, request=request, target=TheBroker(broker_id))


def identity_call(name: str, *, transaction_timeout_ms: int) -> SinkCall:
    """A new identity, in any case: whoever had the sink is fenced, and its transaction aborted."""
    request = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=transaction_timeout_ms
    )
    return SinkCall(step=SinkStep.IDENTIFY, request=request, target=TRANSACTIONS)


def read_identity(answer: Message) -> ProducerIdAndEpoch:
    assert isinstance(answer, InitProducerIdResponse)
    return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)


def next_epoch_call(
    name: str, identity: ProducerIdAndEpoch, *, transaction_timeout_ms: int, not_after_ms: int
) -> SinkCall:
    """A new producer epoch, given only if `identity` is still the newest."""
    request = InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=transaction_timeout_ms,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
    )
    return SinkCall(
        step=SinkStep.NEXT_EPOCH,
        request=request,
        target=TRANSACTIONS,
        is_resent=False,
        not_after_ms=not_after_ms,
    )


def marker_call(name: str, partition: TopicPartition, *, timeout_ms: int | None = None) -> SinkCall:
    """Answered only when no transaction has still to decide about it.

    The partition must be named: a request for all offsets of a group is answered without the very
    first one while that is undecided.
    """
    topic = offset_fetch.OffsetFetchRequestTopics(
        name=partition.topic, partition_indexes=[partition.index]
    )
    group = offset_fetch.OffsetFetchRequestGroup(group_id=name, topics=[topic])
    request = offset_fetch.OffsetFetchRequest(groups=[group], require_stable=True)
    return SinkCall(step=SinkStep.READ_MARKER, request=request, target=GROUP, timeout_ms=timeout_ms)


def any_marker_call(name: str) -> SinkCall:
    """Of whichever partition, as it was decided last."""
    group = offset_fetch.OffsetFetchRequestGroup(group_id=name, topics=None)
    request = offset_fetch.OffsetFetchRequest(groups=[group], require_stable=False)
    return SinkCall(step=SinkStep.READ_MARKER, request=request, target=GROUP)


def read_stored_marker(answer: Message, name: str) -> StoredMarker | None:
    """The marker of an OffsetFetch answer; None if the group has no offset at all."""
    assert isinstance(answer, offset_fetch.OffsetFetchResponse)
    offsets = [
        (TopicPartition(topic.name, each.partition_index), each)
        for group in answer.groups
        for topic in group.topics
        for each in topic.partitions
        if each.committed_offset >= 0
    ]
    if not offsets:
        return None
    if len(offsets) > 1:
        partitions = ", ".join(sorted(str(partition) for partition, _ in offsets))
        raise MarkerUnreadable(f"{name} has offsets of {partitions}: a sink has one marker")
    (partition, stored), *_ = offsets
    return StoredMarker(partition, read_marker(partition, stored.committed_offset, stored.metadata))


def end_offset_call(
    partition: TopicPartition, *, replica_id: int = CONSUMER_REPLICA_ID
) -> SinkCall:
    partition_request = list_offsets.ListOffsetsPartition(
        partition_index=partition.index, timestamp=LATEST_TIMESTAMP
    )
    topic = list_offsets.ListOffsetsTopic(name=partition.topic, partitions=[partition_request])
    request = list_offsets.ListOffsetsRequest(replica_id=replica_id, topics=[topic])
    return SinkCall(step=SinkStep.END_OFFSETS, request=request, target=LeaderOf(partition))


def read_end_offset(answer: Message) -> int:
    assert isinstance(answer, list_offsets.ListOffsetsResponse)
    return answer.topics[0].partitions[0].offset


def add_partitions_call(
    name: str, identity: ProducerIdAndEpoch, partitions: Iterable[TopicPartition]
) -> SinkCall:
    topics: dict[str, add_partitions.AddPartitionsToTxnTopic] = {}
    for each in partitions:
        topic = topics.setdefault(
            each.topic, add_partitions.AddPartitionsToTxnTopic(name=each.topic)
        )
        topic.partitions.append(each.index)
    request = add_partitions.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=identity.producer_id,
        v3_and_below_producer_epoch=identity.producer_epoch,
        v3_and_below_topics=list(topics.values()),
    )
    return SinkCall(step=SinkStep.ADD_PARTITIONS, request=request, target=TRANSACTIONS)


def transaction_call(name: str) -> SinkCall:
    request = DescribeTransactionsRequest(transactional_ids=[name])
    return SinkCall(step=SinkStep.TRANSACTION, request=request, target=TRANSACTIONS)


def producers_call(partition: TopicPartition) -> SinkCall:
    topic = describe_producers.TopicRequest(
        name=partition.topic, partition_indexes=[partition.index]
    )
    request = describe_producers.DescribeProducersRequest(topics=[topic])
    return SinkCall(step=SinkStep.PRODUCERS, request=request, target=LeaderOf(partition))


def add_offsets_call(name: str, identity: ProducerIdAndEpoch) -> SinkCall:
    request = AddOffsetsToTxnRequest(
        transactional_id=name,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        group_id=name,
    )
    return SinkCall(step=SinkStep.ADD_OFFSETS, request=request, target=TRANSACTIONS)


def write_marker_call(name: str, identity: ProducerIdAndEpoch, stored: StoredMarker) -> SinkCall:
    partition = txn_offset_commit.TxnOffsetCommitRequestPartition(
        partition_index=stored.partition.index,
        committed_offset=stored.marker.offset,
        committed_metadata=stored.marker.text,
    )
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(
        name=stored.partition.topic, partitions=[partition]
    )
    request = txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=name,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        topics=[topic],
    )
    return SinkCall(step=SinkStep.MARK, request=request, target=GROUP)


def end_transaction_call(
    name: str, identity: ProducerIdAndEpoch, *, is_commit: bool, timeout_ms: int | None = None
) -> SinkCall:
    request = EndTxnRequest(
        transactional_id=name,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        committed=is_commit,
    )
    return SinkCall(
        step=SinkStep.COMMIT if is_commit else SinkStep.ABORT,
        request=request,
        target=TRANSACTIONS,
        timeout_ms=timeout_ms,
    )
