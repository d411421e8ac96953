"""Questions about many topics at once."""

from __future__ import annotations

from tests.unit.client.admin.test_admin import Given
from tidelog.client.admin.admin import Failed
from tidelog.client.admin.cluster import PREFERRED, elect_leaders
from tidelog.client.admin.descriptions import (
    describe_metadata,
    describe_partition_page,
    describe_topic_configs,
    high_watermarks,
    log_end_offsets,
)
from tidelog.client.admin.question import AdminOutcome
from tidelog.client.admin.topics import list_topics
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages import api_32_describe_configs as configs
from tidelog.core.wire.messages import api_43_elect_leaders as election
from tidelog.core.wire.messages import api_75_describe_topic_partitions as description
from tidelog.core.wire.messages.api_02_list_offsets import ListOffsetsRequest

P0, P1 = TopicPartition("orders", 0), TopicPartition("orders", 1)


def test_a_picture_has_brokers_and_topics_and_creates_nothing() -> None:
    given = Given()
    result = given.ask(describe_metadata(["orders", "nowhere"]))
    assert sorted(result.brokers) == [1, 2, 3]
    assert result.topics["orders"].partitions[0].leader_id == 2
    assert result.topics["nowhere"].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert "nowhere" not in given.cluster.topics


def test_a_page_goes_on_where_the_last_one_ended() -> None:
    given = Given()
    partition = description.DescribeTopicPartitionsResponsePartition(
        partition_index=1, leader_id=3, eligible_leader_replicas=[2]
    )
    topic = description.DescribeTopicPartitionsResponseTopic(name="orders", partitions=[partition])
    cursor = description.Cursor(topic_name="orders", partition_index=2)
    given.says(description.DescribeTopicPartitionsResponse(topics=[topic], next_cursor=cursor))

    page = given.ask(describe_partition_page(["b", "orders"], start_at=P1))
    assert page.next_at == TopicPartition("orders", 2)
    assert page.partitions[P1].leader_id == 3 and page.partitions[P1].eligible_leaders == (2,)
    [asked] = given.cluster.requests(description.DescribeTopicPartitionsRequest)
    assert asked.request.cursor.partition_index == 1


def test_settings_of_many_topics() -> None:
    given = Given()
    setting = configs.DescribeConfigsResourceResult(name="a", value="1", config_source=1)
    results = [
        configs.DescribeConfigsResult(resource_type=2, resource_name="t", configs=[setting]),
        configs.DescribeConfigsResult(resource_type=2, resource_name="u", error_code=3),
    ]
    given.says(configs.DescribeConfigsResponse(results=results))
    result = given.ask(describe_topic_configs(["t", "u"]))
    assert result["t"].configs["a"].value == "1"
    assert result["u"].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_offsets_of_many_partitions_of_one_broker() -> None:
    given = Given()
    given.cluster["orders-0"].write("a", "b")
    result = given.ask(high_watermarks([P0], broker_id=2))
    assert result[P0].offset == 2
    refused = given.ask(log_end_offsets([P0], broker_id=3))
    assert refused[P0].error == ErrorCode.NOT_LEADER_OR_FOLLOWER and refused[P0].offset is None
    by_consumer, by_debugger = given.cluster.requests(ListOffsetsRequest)
    assert (by_consumer.request.replica_id, by_debugger.request.replica_id) == (-1, -2)


def test_elections_that_are_refused_as_a_whole_are_refused_for_each() -> None:
    given = Given()
    denied = ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    given.says(election.ElectLeadersResponse(error_code=denied))
    assert given.ask(elect_leaders(PREFERRED, [P0, P1])) == {
        P0: AdminOutcome(denied),
        P1: AdminOutcome(denied),
    }
    everywhere = given.ask(elect_leaders(PREFERRED), timeout_ms=2_000)
    assert isinstance(everywhere, Failed) and denied.name in everywhere.reason


def test_who_reaches_nobody_says_whom_he_tried() -> None:
    given = Given()
    for broker in (1, 2, 3):
        given.cluster.kill(broker)
    failed = given.ask(list_topics(), timeout_ms=5_000)
    assert "no node could be reached" in failed.reason
    for host in ("b1", "b2", "b3"):
        assert f"{host}:" in failed.reason
    assert "(refused)" in failed.reason
