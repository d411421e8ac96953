"""Requests of clients in a few words each, and the part of the answer that matters.

Topics are named by (name, id): versions that know ids send the id, older ones the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
from tidelog.core.wire.messages.api_03_metadata import MetadataRequest
from tidelog.core.wire.messages.api_19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from tidelog.core.wire.messages.api_20_delete_topics import (
    DeleteTopicsRequest,
    DeleteTopicState,
)
from tidelog.core.wire.messages.api_21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from tidelog.core.wire.messages.api_37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from tidelog.core.wire.messages.api_43_elect_leaders import ElectLeadersRequest, TopicPartitions
from tidelog.core.wire.messages.api_44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tidelog.core.wire.messages.api_61_describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from tidelog.core.wire.messages.api_64_unregister_broker import UnregisterBrokerRequest

PRODUCE_BY_ID_FROM = 13
FETCH_BY_ID_FROM = 13
DELETE_BY_ID = 6
SET = 0
TOPIC_RESOURCE = 2


class TopicName(NamedTuple):
    """A topic as clients know it."""

    name: str
    topic_id: bytes


def produce(
    topic: TopicName, index: int, batch: bytes | bytearray, *, acks: int, timeout_ms: int = 3_000
) -> ProduceRequest:
    data = PartitionProduceData(index=index, records=bytes(batch))
    by_topic = TopicProduceData(name=topic.name, topic_id=topic.topic_id, partition_data=[data])
    return ProduceRequest(acks=acks, timeout_ms=timeout_ms, topic_data=[by_topic])


def produce_answer(answer: object) -> PartitionProduceResponse:
    assert isinstance(answer, ProduceResponse), answer
    return answer.responses[0].partition_responses[0]


def fetch(
    topic: TopicName,
    index: int,
    offset: int,
    *,
    bytes_max: int = 1 << 20,
    wait_ms: int = 0,
    bytes_min: int = 1,
    isolation_level: int = 0,
) -> FetchRequest:
    partition = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=bytes_max)
    by_topic = FetchTopic(topic=topic.name, topic_id=topic.topic_id, partitions=[partition])
    return FetchRequest(
        max_wait_ms=wait_ms,
        min_bytes=bytes_min,
        isolation_level=isolation_level,
        topics=[by_topic],
    )


def fetch_answer(answer: object) -> PartitionData:
    assert isinstance(answer, FetchResponse), answer
    return answer.responses[0].partitions[0]


def list_offset(
    topic: TopicName, index: int, timestamp_ms: int, *, leader_epoch: int = -1
) -> ListOffsetsRequest:
    """From version 4 on the request carries the leader epoch that the client knows."""
    partition = ListOffsetsPartition(
        partition_index=index, current_leader_epoch=leader_epoch, timestamp=timestamp_ms
    )
    by_topic = ListOffsetsTopic(name=topic.name, partitions=[partition])
    return ListOffsetsRequest(replica_id=-1, topics=[by_topic])


def list_offset_answer(answer: object) -> ListOffsetsPartitionResponse:
    assert isinstance(answer, ListOffsetsResponse), answer
    return answer.topics[0].partitions[0]


def create_topic(
    name: str,
    *,
    partitions: int = 1,
    replication_factor: int = 1,
    configs: Mapping[str, str] | None = None,
) -> CreateTopicsRequest:
    topic = CreatableTopic(
        name=name,
        num_partitions=partitions,
        replication_factor=replication_factor,
        configs=[
            CreatableTopicConfig(name=key, value=value)
            for key, value in sorted((configs or {}).items())
        ],
    )
    return CreateTopicsRequest(topics=[topic], timeout_ms=3_000)


def delete_topic(topic: TopicName) -> DeleteTopicsRequest:
    """For version 6: by id, so that a namesake is never meant."""
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(name=None, topic_id=topic.topic_id)], timeout_ms=3_000
    )


def delete_records(topic: TopicName, index: int, before_offset: int) -> DeleteRecordsRequest:
    partition = DeleteRecordsPartition(partition_index=index, offset=before_offset)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic.name, partitions=[partition])], timeout_ms=3_000
    )


def create_partitions(name: str, count: int) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)],
        timeout_ms=3_000,
        validate_only=False,
    )


def elect_leaders(name: str, indexes: Sequence[int], *, unclean: bool) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=1 if unclean else 0,
        topic_partitions=[TopicPartitions(topic=name, partitions=list(indexes))],
        timeout_ms=3_000,
    )


def set_topic_config(name: str, key: str, value: str) -> IncrementalAlterConfigsRequest:
    change = AlterableConfig(name=key, config_operation=SET, value=value)
    resource = AlterConfigsResource(
        resource_type=TOPIC_RESOURCE, resource_name=name, configs=[change]
    )
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=False)


def unregister_broker(broker_id: int) -> UnregisterBrokerRequest:
    return UnregisterBrokerRequest(broker_id=broker_id)


def list_topics() -> MetadataRequest:
    return MetadataRequest(topics=None, allow_auto_topic_creation=False)


def init_producer() -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)


def describe_producers(topic: TopicName, indexes: Sequence[int]) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[TopicRequest(name=topic.name, partition_indexes=list(indexes))]
    )
