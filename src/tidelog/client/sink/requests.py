"""The sink's requests, made from what the sink knows, and its answers as values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tidelog.client.admin.configs import ResourceKind
from tidelog.client.admin.question import AnyNode, LeaderOf, TheBroker
from tidelog.client.connections import SOFTWARE_NAME, SOFTWARE_VERSION
from tidelog.client.producer.batch import ProducerIdentity
from tidelog.client.sink.asking import Ask
from tidelog.client.sink.errors import MarkerUnreadable
from tidelog.client.sink.marker import Marker, read_marker
from tidelog.client.sink.steps import GROUP, TRANSACTIONS, Step
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages import api_02_list_offsets as list_offsets
from tidelog.core.wire.messages import api_03_metadata as metadata
from tidelog.core.wire.messages import api_09_offset_fetch as offset_fetch
from tidelog.core.wire.messages import api_24_add_partitions_to_txn as add_partitions
from tidelog.core.wire.messages import api_28_txn_offset_commit as txn_offset_commit
from tidelog.core.wire.messages import api_32_describe_configs as describe_configs
from tidelog.core.wire.messages import api_61_describe_producers as describe_producers
from tidelog.core.wire.messages.api_18_api_versions import ApiVersionsRequest
from tidelog.core.wire.messages.api_22_init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidelog.core.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest
from tidelog.core.wire.messages.api_65_describe_transactions import DescribeTransactionsRequest
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import CONSUMER_REPLICA_ID, LATEST_TIMESTAMP


class Found(NamedTuple):
    """The marker and where it stands."""

    place: TopicPartition
    marker: Marker


def ask_versions() -> Ask:
    request = ApiVersionsRequest(
        client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION
    )
    return Ask(step=Step.VERSIONS, request=request, whom=AnyNode())


def ask_topics(topics: Iterable[str]) -> Ask:
    request = metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name=name) for name in topics],
        allow_auto_topic_creation=False,
    )
    return Ask(step=Step.TOPICS, request=request, whom=AnyNode())


def ask_configs(broker_id: int, keys: Iterable[str]) -> Ask:
    resource = describe_configs.DescribeConfigsResource(
        resource_type=ResourceKind.BROKER,
        resource_name=str(broker_id),
        configuration_keys=list(keys),
    )
    request = describe_configs.DescribeConfigsRequest(resources=[resource])
    return Ask(step=Step.CONFIGS, request=request, whom=TheBroker(broker_id))


def ask_identity(name: str, *, transaction_timeout_ms: int) -> Ask:
    """Unconditionally: whoever had the sink is fenced, and its transaction aborted."""
    request = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=transaction_timeout_ms
    )
    return Ask(step=Step.IDENTIFY, request=request, whom=TRANSACTIONS)


def told_identity(answer: Message) -> ProducerIdentity:
    assert isinstance(answer, InitProducerIdResponse)
    return ProducerIdentity(answer.producer_id, answer.producer_epoch)


def ask_next_epoch(
    name: str, identity: ProducerIdentity, *, transaction_timeout_ms: int, not_after_ms: int
) -> Ask:
    """Only if `identity` is still the newest."""
    request = InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=transaction_timeout_ms,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
    )
    return Ask(
        step=Step.NEXT_EPOCH,
        request=request,
        whom=TRANSACTIONS,
        is_resent=False,
        not_after_ms=not_after_ms,
    )


def ask_marker(name: str, place: TopicPartition, *, patience_ms: int | None = None) -> Ask:
    """Answered only when no transaction has still to decide about it.

    The place must be named: who asks for all offsets of a group is told nothing of the very first
    one while it is undecided.
    """
    topic = offset_fetch.OffsetFetchRequestTopics(name=place.topic, partition_indexes=[place.index])
    group = offset_fetch.OffsetFetchRequestGroup(group_id=name, topics=[topic])
    request = offset_fetch.OffsetFetchRequest(groups=[group], require_stable=True)
    return Ask(step=Step.READ_MARKER, request=request, whom=GROUP, patience_ms=patience_ms)


def ask_any_marker(name: str) -> Ask:
    """Wherever it stands, as it was decided last."""
    group = offset_fetch.OffsetFetchRequestGroup(group_id=name, topics=None)
    request = offset_fetch.OffsetFetchRequest(groups=[group], require_stable=False)
    return Ask(step=Step.READ_MARKER, request=request, whom=GROUP)


def found_marker(answer: Message, name: str) -> Found | None:
    """None: the group has no offset at all."""
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
        places = ", ".join(sorted(str(place) for place, _ in offsets))
        raise MarkerUnreadable(f"{name} has offsets of {places}: a sink has one marker")
    (place, told), *_ = offsets
    return Found(place, read_marker(place, told.committed_offset, told.metadata))


def ask_end_offset(partition: TopicPartition, *, replica_id: int = CONSUMER_REPLICA_ID) -> Ask:
    asked = list_offsets.ListOffsetsPartition(
        partition_index=partition.index, timestamp=LATEST_TIMESTAMP
    )
    topic = list_offsets.ListOffsetsTopic(name=partition.topic, partitions=[asked])
    request = list_offsets.ListOffsetsRequest(replica_id=replica_id, topics=[topic])
    return Ask(step=Step.END_OFFSETS, request=request, whom=LeaderOf(partition))


def told_end_offset(answer: Message) -> int:
    assert isinstance(answer, list_offsets.ListOffsetsResponse)
    return answer.topics[0].partitions[0].offset


def ask_add_partitions(
    name: str, identity: ProducerIdentity, partitions: Iterable[TopicPartition]
) -> Ask:
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
    return Ask(step=Step.ADD_PARTITIONS, request=request, whom=TRANSACTIONS)


def ask_transaction(name: str) -> Ask:
    request = DescribeTransactionsRequest(transactional_ids=[name])
    return Ask(step=Step.TRANSACTION, request=request, whom=TRANSACTIONS)


def ask_producers(partition: TopicPartition) -> Ask:
    topic = describe_producers.TopicRequest(
        name=partition.topic, partition_indexes=[partition.index]
    )
    request = describe_producers.DescribeProducersRequest(topics=[topic])
    return Ask(step=Step.PRODUCERS, request=request, whom=LeaderOf(partition))


def ask_add_offsets(name: str, identity: ProducerIdentity) -> Ask:
    request = AddOffsetsToTxnRequest(
        transactional_id=name,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        group_id=name,
    )
    return Ask(step=Step.ADD_OFFSETS, request=request, whom=TRANSACTIONS)


def ask_mark(name: str, identity: ProducerIdentity, found: Found) -> Ask:
    partition = txn_offset_commit.TxnOffsetCommitRequestPartition(
        partition_index=found.place.index,
        committed_offset=found.marker.offset,
        committed_metadata=found.marker.text,
    )
    topic = txn_offset_commit.TxnOffsetCommitRequestTopic(
        name=found.place.topic, partitions=[partition]
    )
    request = txn_offset_commit.TxnOffsetCommitRequest(
        transactional_id=name,
        group_id=name,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        topics=[topic],
    )
    return Ask(step=Step.MARK, request=request, whom=GROUP)


def ask_end(
    name: str, identity: ProducerIdentity, *, is_commit: bool, patience_ms: int | None = None
) -> Ask:
    request = EndTxnRequest(
        transactional_id=name,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        committed=is_commit,
    )
    return Ask(
        step=Step.COMMIT if is_commit else Step.ABORT,
        request=request,
        whom=TRANSACTIONS,
        patience_ms=patience_ms,
    )
