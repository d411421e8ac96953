"""Requests of clients in a few words each, and the part of the answer that matters.

Topics are named by (name, id): versions that know ids send the id, older ones the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidelog.client.partition_requests import (
    fetch_request,
    init_producer_id_request,
    list_offsets_request,
    produce_request,
)
from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.core.wire.messages.api_01_fetch import FetchRequest
from tidelog.core.wire.messages.api_02_list_offsets import ListOffsetsRequest
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
from tidelog.core.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from tidelog.core.wire.messages.api_61_describe_producers import (
    DescribeProducersRequest,
    TopicRequest,
)
from tidelog.core.wire.messages.api_64_unregister_broker import UnregisterBrokerRequest

PRODUCE_BY_ID_FROM = 13
FETCH_BY_ID_FROM = 13
DELETE_BY_ID = 6
TIMEOUT_MS = 3_000
SET = 0
TOPIC_RESOURCE = 2


class TopicName(NamedTuple):
    """A topic as clients know it."""

    name: str
    topic_id: bytes


def produce(topic: TopicName, index: int, batch: bytes | bytearray, *, acks: int) -> ProduceRequest:
    return produce_request(
        topic.name, index, batch, topic_id=topic.topic_id, acks=acks, timeout_ms=TIMEOUT_MS
    )


def fetch(topic: TopicName, index: int, offset: int, *, wait_ms: int = 0) -> FetchRequest:
    return fetch_request(topic.name, index, offset, topic_id=topic.topic_id, wait_ms=wait_ms)


def list_offset(
    topic: TopicName, index: int, timestamp_ms: int, *, leader_epoch: int | None = None
) -> ListOffsetsRequest:
    """From version 4 on the request carries the leader epoch that the client knows."""
    return list_offsets_request(
        topic.name, index, leader_epoch=leader_epoch, timestamp_ms=timestamp_ms
    )


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
    return CreateTopicsRequest(topics=[topic], timeout_ms=TIMEOUT_MS)


def delete_topic(topic: TopicName) -> DeleteTopicsRequest:
    """For version 6: by id, so that a namesake is never meant."""
    return DeleteTopicsRequest(
        topics=[DeleteTopicState(name=None, topic_id=topic.topic_id)], timeout_ms=TIMEOUT_MS
    )


def delete_records(topic: TopicName, index: int, before_offset: int) -> DeleteRecordsRequest:
    partition = DeleteRecordsPartition(partition_index=index, offset=before_offset)
    return DeleteRecordsRequest(
        topics=[DeleteRecordsTopic(name=topic.name, partitions=[partition])], timeout_ms=TIMEOUT_MS
    )


def create_partitions(name: str, count: int) -> CreatePartitionsRequest:
    return CreatePartitionsRequest(
        topics=[CreatePartitionsTopic(name=name, count=count, assignments=None)],
        timeout_ms=TIMEOUT_MS,
        validate_only=False,
    )


def elect_leaders(name: str, indexes: Sequence[int], *, unclean: bool) -> ElectLeadersRequest:
    return ElectLeadersRequest(
        election_type=1 if unclean else 0,
        topic_partitions=[TopicPartitions(topic=name, partitions=list(indexes))],
        timeout_ms=TIMEOUT_MS,
    )


def reassign(
    name: str, index: int, replicas: Sequence[int] | None
) -> AlterPartitionReassignmentsRequest:
    """Without replicas: cancel."""
    partition = ReassignablePartition(
        partition_index=index, replicas=None if replicas is None else list(replicas)
    )
    return AlterPartitionReassignmentsRequest(
        timeout_ms=3_000, topics=[ReassignableTopic(name=name, partitions=[partition])]
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
    return init_producer_id_request()


def describe_producers(topic: TopicName, indexes: Sequence[int]) -> DescribeProducersRequest:
    return DescribeProducersRequest(
        topics=[TopicRequest(name=topic.name, partition_indexes=list(indexes))]
    )
