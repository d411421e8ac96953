"""A survey asks page by page, forgives what old or silent brokers do not tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from tidelog.client.admin.admin import Failed
from tidelog.client.admin.question import AnyNode, Question, TheBroker
from tidelog.client.cluster_metadata import BrokerNode
from tidelog.client.config import Address
from tidelog.client.shells.blocking_clients import Admin, NotSupported
from tidelog.client.shells.topic_descriptions import describe_by_any_broker, describe_topics
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages import api_02_list_offsets as offsets
from tidelog.core.wire.messages import api_03_metadata as metadata
from tidelog.core.wire.messages import api_32_describe_configs as configs
from tidelog.core.wire.messages import api_46_list_partition_reassignments as moves
from tidelog.core.wire.messages import api_75_describe_topic_partitions as description

UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


class KnowingAdmin:
    """Answers by hand: two brokers, topic `orders` with two partitions, one page for each."""

    def __init__(self) -> None:
        self.known_to = {1, 2}
        self.silent: set[int] = set()
        self.has_pages = True
        self.pages = 0

    def ask(self, question: Question[Any], *, timeout_s: float) -> Any:
        if isinstance(question.request, description.DescribeTopicPartitionsRequest):
            if not self.has_pages:
                raise NotSupported("no such API")
            self.pages += 1
        broker_id = (
            1 if question.target == AnyNode() else cast(TheBroker, question.target).broker_id
        )
        return question.read(self._answer(question.request, broker_id))

    def ask_each(
        self, questions: Mapping[Any, Question[Any]], *, timeout_s: float
    ) -> dict[Any, Any]:
        return {
            key: Failed("silent")
            if cast(TheBroker, each.target).broker_id in self.silent
            else self.ask(each, timeout_s=timeout_s)
            for key, each in questions.items()
        }

    def _answer(self, request: Any, broker_id: int) -> Any:
        if isinstance(request, metadata.MetadataRequest):
            return self._metadata(request, broker_id)
        if isinstance(request, configs.DescribeConfigsRequest):
            return configs.DescribeConfigsResponse(
                results=[_settings("orders", is_known=broker_id in self.known_to)]
            )
        if isinstance(request, offsets.ListOffsetsRequest):
            result = [
                offsets.ListOffsetsPartitionResponse(
                    partition_index=each.partition_index,
                    offset=10 * broker_id + (5 if request.replica_id == -2 else 0),
                )
                for each in request.topics[0].partitions
            ]
            topic = offsets.ListOffsetsTopicResponse(name="orders", partitions=result)
            return offsets.ListOffsetsResponse(topics=[topic])
        if isinstance(request, moves.ListPartitionReassignmentsRequest):
            partition = moves.OngoingPartitionReassignment(
                partition_index=1, replicas=[1, 2, 3], adding_replicas=[3], removing_replicas=[]
            )
            moving = moves.OngoingTopicReassignment(name="orders", partitions=[partition])
            return moves.ListPartitionReassignmentsResponse(topics=[moving])
        return _page(request)

    def _metadata(self, request: metadata.MetadataRequest, broker_id: int) -> Any:
        brokers = [
            metadata.MetadataResponseBroker(node_id=each, host="b", port=each, rack=f"rack-{each}")
            for each in (1, 2)
        ]
        partitions = [
            metadata.MetadataResponsePartition(
                partition_index=each, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1, 2]
            )
            for each in (1, 0)
        ]
        if broker_id in self.known_to:
            topic = metadata.MetadataResponseTopic(name="orders", partitions=partitions)
        else:
            topic = metadata.MetadataResponseTopic(name="orders", error_code=UNKNOWN)
        return metadata.MetadataResponse(brokers=brokers, topics=[topic])


def _settings(topic: str, *, is_known: bool) -> configs.DescribeConfigsResult:
    if not is_known:
        return configs.DescribeConfigsResult(
            resource_type=2, resource_name=topic, error_code=UNKNOWN
        )
    own = configs.DescribeConfigsResourceResult(name="own", value="1", config_source=1)
    default = configs.DescribeConfigsResourceResult(name="default", value="2", config_source=5)
    return configs.DescribeConfigsResult(
        resource_type=2, resource_name=topic, configs=[own, default]
    )


def _page(request: description.DescribeTopicPartitionsRequest) -> Any:
    index = 0 if request.cursor is None else request.cursor.partition_index
    partition = description.DescribeTopicPartitionsResponsePartition(
        partition_index=index,
        leader_id=1,
        replica_nodes=[1, 2],
        isr_nodes=[1, 2],
        last_known_elr=[2],
    )
    topic = description.DescribeTopicPartitionsResponseTopic(name="orders", partitions=[partition])
    cursor = description.Cursor(topic_name="orders", partition_index=1) if index == 0 else None
    return description.DescribeTopicPartitionsResponse(topics=[topic], next_cursor=cursor)


def described(admin: KnowingAdmin) -> Any:
    return describe_topics(cast(Admin, admin), ["orders"], with_offsets=True, timeout_s=1.0)


def test_all_pages_settings_offsets_and_racks() -> None:
    admin = KnowingAdmin()
    found = described(admin)
    topic = found.topics["orders"]
    assert admin.pages == 2
    assert [each.state.partition for each in topic.partitions] == [0, 1]
    assert all(each.state.last_known_leaders == (2,) for each in topic.partitions)
    assert topic.configs == {"own": "1"}, "only what is the topic's own"
    assert [each.move and each.move.adding for each in topic.partitions] == [None, (3,)]
    assert topic.partitions[0].high_watermark == 10
    assert topic.partitions[0].log_end_offsets == {1: 15, 2: 25}
    assert found.racks == {1: "rack-1", 2: "rack-2"}


def test_a_broker_without_pages_still_tells_the_rest() -> None:
    admin = KnowingAdmin()
    admin.has_pages = False
    partition = described(admin).topics["orders"].partitions[0]
    assert partition.state.eligible_leaders is None and partition.state.leader_id == 1


def test_a_silent_broker_leaves_only_its_own_offsets_unknown() -> None:
    admin = KnowingAdmin()
    admin.silent = {2}
    partition = described(admin).topics["orders"].partitions[0]
    assert partition.log_end_offsets == {1: 15, 2: None} and partition.high_watermark == 10


def test_a_new_topic_is_found_where_it_is_known() -> None:
    admin = KnowingAdmin()
    admin.known_to = {2}
    result = describe_by_any_broker(cast(Admin, admin), ["orders"], timeout_s=1.0)
    assert result.topics["orders"].error == ErrorCode.NONE
    assert result.brokers[2] == BrokerNode(2, Address("b", 2), "rack-2")
    assert described(admin).topics["orders"].configs == {"own": "1"}
    admin.known_to = set()
    assert described(admin).refused == {"orders": UNKNOWN}
    assert not described(admin).topics
