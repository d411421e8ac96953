"""What a well-behaved fake broker answers, one function per API."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.unit.client.fake_fetch import Parked, fetch, named
from tests.unit.client.fake_log import FakePartition, check_epoch
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages.api_00_produce import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceResponse,
    TopicProduceResponse,
)
from tidelog.core.wire.messages.api_02_list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from tidelog.core.wire.messages.api_03_metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tidelog.core.wire.messages.api_18_api_versions import ApiVersion, ApiVersionsResponse
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from tidelog.core.wire.messages.api_23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from tidelog.core.wire.records import iterate
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

if TYPE_CHECKING:
    from tests.unit.client.fake_cluster import FakeBroker, FakeCluster

SPOKEN = (0, 1, 2, 3, 18, 22, 23)


def answer(cluster: FakeCluster, broker: FakeBroker, request: Any) -> Message | Parked | None:
    known: dict[int, Callable[..., Message | Parked | None]] = {
        0: produce,
        1: fetch,
        2: list_offsets,
        3: metadata,
        18: api_versions,
        22: init_producer_id,
        23: offset_for_leader_epoch,
    }
    return known[request.api_key](cluster, broker, request)


def api_versions(cluster: FakeCluster, broker: FakeBroker, request: Any) -> Message:
    spoken = {key: (MESSAGES[key][0].versions[0], MESSAGES[key][0].versions[-1]) for key in SPOKEN}
    spoken.update(cluster.api_versions)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=oldest, max_version=newest)
            for key, (oldest, newest) in spoken.items()
        ]
    )


def metadata(cluster: FakeCluster, broker: FakeBroker, request: Any) -> Message:
    return MetadataResponse(
        cluster_id="fake",
        controller_id=1,
        brokers=[
            MetadataResponseBroker(node_id=each.id, host=each.host, port=9092, rack=each.rack)
            for each in cluster.brokers.values()
        ],
        topics=[_topic(cluster, each.name) for each in request.topics or ()],
    )


def _topic(cluster: FakeCluster, name: str) -> MetadataResponseTopic:
    if name not in cluster.topics:
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return MetadataResponseTopic(name=name, error_code=error)
    return MetadataResponseTopic(
        name=name,
        topic_id=cluster.topics[name],
        partitions=[
            MetadataResponsePartition(
                error_code=ErrorCode.NONE if each.leader else ErrorCode.LEADER_NOT_AVAILABLE,
                partition_index=partition.index,
                leader_id=each.leader or -1,
                leader_epoch=each.leader_epoch,
                replica_nodes=list(each.replicas),
                isr_nodes=list(each.replicas),
            )
            for partition, each in cluster.partitions.items()
            if partition.topic == name
        ],
    )


def init_producer_id(cluster: FakeCluster, broker: FakeBroker, request: Any) -> Message:
    cluster.next_producer_id += 1
    return InitProducerIdResponse(producer_id=cluster.next_producer_id - 1, producer_epoch=0)


def produce(cluster: FakeCluster, broker: FakeBroker, request: Any) -> Message | None:
    topics = []
    endpoints: dict[int, NodeEndpoint] = {}
    for topic in request.topic_data:
        name = named(cluster, topic, by="name")
        answers = []
        for each in topic.partition_data:
            partition = cluster.partitions[TopicPartition(name, each.index)]
            if partition.leader == broker.id:
                error, base_offset = partition.append(bytes(each.records))
                answers.append(
                    PartitionProduceResponse(
                        index=each.index, error_code=error, base_offset=base_offset
                    )
                )
            else:
                answers.append(_not_leader(cluster, partition, each.index, endpoints))
        topics.append(
            TopicProduceResponse(name=name, topic_id=topic.topic_id, partition_responses=answers)
        )
    if request.acks == 0:
        return None
    return ProduceResponse(responses=topics, node_endpoints=list(endpoints.values()))


def _not_leader(
    cluster: FakeCluster,
    partition: FakePartition,
    index: int,
    endpoints: dict[int, NodeEndpoint],
) -> PartitionProduceResponse:
    refused = PartitionProduceResponse(
        index=index, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, base_offset=-1
    )
    if cluster.gives_hints and partition.leader is not None:
        leader = cluster.brokers[partition.leader]
        endpoints[leader.id] = NodeEndpoint(node_id=leader.id, host=leader.host, port=9092)
        refused.current_leader = LeaderIdAndEpoch(
            leader_id=leader.id, leader_epoch=partition.leader_epoch
        )
    return refused


def list_offsets(cluster: FakeCluster, broker: FakeBroker, request: Any) -> Message:
    topics = []
    for topic in request.topics:
        answers = []
        for each in topic.partitions:
            partition = cluster.partitions[TopicPartition(topic.name, each.partition_index)]
            entry = ListOffsetsPartitionResponse(partition_index=each.partition_index)
            entry.error_code = check_epoch(partition, broker.id, each.current_leader_epoch)
            if entry.error_code == ErrorCode.NONE:
                entry.offset = _offset_for(partition, each.timestamp, request.replica_id)
                entry.leader_epoch = partition.leader_epoch
                entry.timestamp = each.timestamp if each.timestamp >= 0 else -1
            answers.append(entry)
        topics.append(ListOffsetsTopicResponse(name=topic.name, partitions=answers))
    return ListOffsetsResponse(topics=topics)


def _offset_for(partition: FakePartition, timestamp_ms: int, replica_id: int) -> int:
    if timestamp_ms == EARLIEST_TIMESTAMP:
        return partition.log_start_offset
    if timestamp_ms == LATEST_TIMESTAMP:
        return partition.high_watermark if replica_id == -1 else partition.end_offset
    for batch in partition.log:
        for record in iterate(batch):
            if record.timestamp_ms >= timestamp_ms:
                return record.offset
    return -1


def offset_for_leader_epoch(cluster: FakeCluster, broker: FakeBroker, request: Any) -> Message:
    topics = []
    for topic in request.topics:
        answers = []
        for each in topic.partitions:
            partition = cluster.partitions[TopicPartition(topic.topic, each.partition)]
            entry = EpochEndOffset(partition=each.partition)
            entry.error_code = check_epoch(partition, broker.id, each.current_leader_epoch)
            found = partition.end_of_epoch(each.leader_epoch)
            if entry.error_code == ErrorCode.NONE and found is not None:
                entry.leader_epoch, entry.end_offset = found
            answers.append(entry)
        topics.append(OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers))
    return OffsetForLeaderEpochResponse(topics=topics)
