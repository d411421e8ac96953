"""Whom an admin asks, when it asks again, and what it makes of the answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fake_cluster import PORT, Close, FakeCluster, once
from tests.unit.client.virtual import Host
from tidelog.client.admin.admin import AdminMachine, Failed
from tidelog.client.admin.cluster import (
    PREFERRED,
    QuorumReplica,
    describe_cluster,
    describe_quorum,
    elect_leaders,
    unregister_broker,
)
from tidelog.client.admin.configs import (
    ConfigEntry,
    ConfigOperation,
    ResourceKind,
    alter_configs,
    describe_configs,
)
from tidelog.client.admin.offsets import (
    LeaderEpochEnd,
    ListedOffset,
    delete_records,
    describe_producers,
    end_of_leader_epoch,
    high_watermark,
    list_offset,
    log_end_offset,
)
from tidelog.client.admin.question import AdminOutcome, Question, TheBroker, TheNode
from tidelog.client.admin.topics import (
    create_partitions,
    create_topic,
    delete_topic,
    describe_topic,
    describe_topic_partitions,
    list_topics,
)
from tidelog.client.config import Address, client_config
from tidelog.core.model.config import ConfigSource
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages import (
    MESSAGES,
)
from tidelog.core.wire.messages import api_19_create_topics as create
from tidelog.core.wire.messages import api_20_delete_topics as delete
from tidelog.core.wire.messages import api_21_delete_records as deletion
from tidelog.core.wire.messages import api_32_describe_configs as configs
from tidelog.core.wire.messages import api_37_create_partitions as growth
from tidelog.core.wire.messages import api_43_elect_leaders as election
from tidelog.core.wire.messages import api_44_incremental_alter_configs as alteration
from tidelog.core.wire.messages import api_55_describe_quorum as quorum
from tidelog.core.wire.messages import api_60_describe_cluster as members
from tidelog.core.wire.messages import api_61_describe_producers as producers
from tidelog.core.wire.messages import api_64_unregister_broker as unregistration
from tidelog.core.wire.messages import api_75_describe_topic_partitions as description
from tidelog.core.wire.messages.api_02_list_offsets import ListOffsetsRequest
from tidelog.core.wire.sentinels import EARLIEST_TIMESTAMP

P0 = TopicPartition("orders", 0)
ADMIN_APIS = (19, 20, 21, 32, 37, 43, 44, 55, 60, 61, 64, 75)


class Given:
    """An admin, and a cluster that answers what it is told to."""

    def __init__(self) -> None:
        self.cluster = FakeCluster()
        self.cluster.create("orders", leader=2)
        for key in ADMIN_APIS:
            versions = MESSAGES[key][0].versions
            self.cluster.api_versions[key] = (versions[0], versions[-1])
        self.clock = self.cluster.clock
        config = client_config({"bootstrap.servers": self.cluster.bootstrap})
        self.host = Host(self.cluster, config)
        self.admin = AdminMachine(self.host.client)

    def says(self, answer: Any) -> None:
        """The answer to every request of its API."""
        self.cluster.rules.append(
            lambda broker, request: answer if request.api_key == answer.api_key else None
        )

    def ask(self, question: Question[Any], *, timeout_ms: int = 60_000) -> Any:
        results: list[Any] = []
        self.host.do(
            lambda now_ms: self.admin.ask(
                question,
                lambda result, now_ms: results.append(result),
                now_ms=now_ms,
                timeout_ms=timeout_ms,
            )
        )
        self.clock.run_until(lambda: results, within_ms=timeout_ms)
        return results[0]


def test_the_leader_is_asked_and_its_successor_if_it_has_moved() -> None:
    given = Given()
    given.cluster["orders-0"].write("a", "b")

    assert given.ask(high_watermark(P0)) == ListedOffset(ErrorCode.NONE, 2, None, 0)
    given.cluster["orders-0"].elect(3)
    assert given.ask(list_offset(P0, EARLIEST_TIMESTAMP)) == ListedOffset(
        ErrorCode.NONE, 0, None, 1
    )
    asked = [each.broker_id for each in given.cluster.requests(ListOffsetsRequest)]
    assert set(asked[:-1]) == {2} and asked[-1] == 3


def test_a_chosen_broker_is_asked_whatever_it_is_and_its_refusal_is_the_answer() -> None:
    given = Given()
    refusal = given.ask(log_end_offset(P0, broker_id=3))

    assert refusal.error == ErrorCode.NOT_LEADER_OR_FOLLOWER and refusal.offset is None
    [asked] = given.cluster.requests(ListOffsetsRequest)
    assert asked.broker_id == 3 and asked.request.replica_id == -2


def test_a_node_that_nobody_names_is_asked_by_its_address() -> None:
    given = Given()
    given.ask(high_watermark(P0).to(TheNode(Address("b3", PORT))))
    assert given.cluster.requests(ListOffsetsRequest)[0].broker_id == 3


def test_the_end_of_a_leader_epoch() -> None:
    given = Given()
    given.cluster["orders-0"].write("a")
    given.cluster["orders-0"].elect(2)
    assert given.ask(end_of_leader_epoch(P0, 0)) == LeaderEpochEnd(ErrorCode.NONE, 0, 1)


def test_another_node_is_asked_when_one_closes_the_connection() -> None:
    given = Given()
    given.cluster.rules.append(once(lambda broker, request: _close(request, 60)))
    given.says(members.DescribeClusterResponse(cluster_id="c", controller_id=-1))

    result = given.ask(describe_cluster())
    assert (result.cluster_id, result.controller_id) == ("c", None)


def _close(request: Any, api_key: int) -> Any:
    return Close() if request.api_key == api_key else None


def test_a_controller_that_is_not_one_is_asked_again_and_other_refusals_are_answers() -> None:
    given = Given()
    refusals = [ErrorCode.NOT_CONTROLLER, ErrorCode.NOT_CONTROLLER, ErrorCode.POLICY_VIOLATION]

    def rule(broker_id: int, request: Any) -> Any:
        if request.api_key != 19:
            return None
        error = refusals.pop(0)
        result = create.CreatableTopicResult(name="t", error_code=error, error_message="no")
        return create.CreateTopicsResponse(topics=[result])

    given.cluster.rules.append(rule)
    result = given.ask(create_topic("t"))

    assert (result.error, result.message, result.topic_id) == (
        ErrorCode.POLICY_VIOLATION,
        "no",
        None,
    )
    assert not refusals


def test_without_an_answer_in_time_a_question_fails_and_says_why() -> None:
    given = Given()
    for broker in (1, 2, 3):
        given.cluster.kill(broker)
    assert isinstance(given.ask(list_topics(), timeout_ms=5_000), Failed)

    given.cluster.start(1)
    failed = given.ask(log_end_offset(P0, broker_id=2), timeout_ms=5_000)
    assert isinstance(failed, Failed) and "broker 2 could not be reached" in failed.reason


def test_an_api_that_the_broker_does_not_have_is_no_reason_to_wait() -> None:
    given = Given()
    del given.cluster.api_versions[55]
    failed = given.ask(describe_quorum())
    assert isinstance(failed, Failed) and "DescribeQuorumRequest" in failed.reason


def test_a_topic_is_made_with_counts_placement_and_settings() -> None:
    given = Given()
    made = create.CreatableTopicResult(
        name="t", topic_id=bytes(16), num_partitions=2, replication_factor=3
    )
    given.says(create.CreateTopicsResponse(topics=[made]))

    result = given.ask(create_topic("t", assignment={0: [1, 2], 1: [2, 3]}, configs={"a": "b"}))

    assert (result.error, result.partitions, result.replication_factor) == (ErrorCode.NONE, 2, 3)
    [asked] = given.cluster.requests(create.CreateTopicsRequest)
    [topic] = asked.request.topics
    assert (topic.num_partitions, topic.replication_factor) == (-1, -1)
    assert [each.broker_ids for each in topic.assignments] == [[1, 2], [2, 3]]
    assert [(each.name, each.value) for each in topic.configs] == [("a", "b")]


def test_topics_are_listed_and_described() -> None:
    given = Given()
    topic_id = given.cluster.topics["orders"]
    given.cluster["orders-0"].elect(None)

    result = given.ask(describe_topic("orders"))
    assert result.topic_id == topic_id
    assert result.partitions[0].leader_id is None and result.partitions[0].leader_epoch == 1
    assert result.partitions[0].replicas == (1, 2, 3)
    missing = given.ask(describe_topic("nowhere"))
    assert missing.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_eligible_leaders_are_described() -> None:
    given = Given()
    partition = description.DescribeTopicPartitionsResponsePartition(
        leader_id=-1, eligible_leader_replicas=[2], last_known_elr=[3]
    )
    topic = description.DescribeTopicPartitionsResponseTopic(name="orders", partitions=[partition])
    given.says(description.DescribeTopicPartitionsResponse(topics=[topic]))

    result = given.ask(describe_topic_partitions("orders")).partitions[0]
    assert (result.leader_id, result.eligible_leaders, result.last_known_leaders) == (
        None,
        (2,),
        (3,),
    )


def test_topics_grow_and_go() -> None:
    given = Given()
    result = growth.CreatePartitionsTopicResult(name="t", error_code=37, error_message="fewer")
    given.says(growth.CreatePartitionsResponse(results=[result]))
    assert given.ask(create_partitions("t", total=1)) == AdminOutcome(
        ErrorCode.INVALID_PARTITIONS, "fewer"
    )
    given.says(delete.DeleteTopicsResponse(responses=[delete.DeletableTopicResult(name="t")]))
    assert given.ask(delete_topic("t")).is_ok
    assert given.ask(delete_topic(topic_id=bytes(16))).is_ok
    by_name, by_id = given.cluster.requests(delete.DeleteTopicsRequest)
    assert by_name.request.topics[0].name == "t" and by_id.request.topics[0].name is None


def test_records_are_deleted_up_to_an_offset_or_to_the_high_watermark() -> None:
    given = Given()
    result = deletion.DeleteRecordsPartitionResult(partition_index=0, low_watermark=7)
    topic = deletion.DeleteRecordsTopicResult(name="orders", partitions=[result])
    given.says(deletion.DeleteRecordsResponse(topics=[topic]))

    assert given.ask(delete_records(P0, before_offset=7)).log_start_offset == 7
    given.ask(delete_records(P0))
    asked = given.cluster.requests(deletion.DeleteRecordsRequest)
    assert [each.request.topics[0].partitions[0].offset for each in asked] == [7, -1]
    assert {each.broker_id for each in asked} == {2}


def test_producers_are_described_by_the_next_sequence_they_should_use() -> None:
    given = Given()
    state = producers.ProducerState(producer_id=7, producer_epoch=1, last_sequence=9)
    partition = producers.PartitionResponse(active_producers=[state])
    topic = producers.TopicResponse(name="orders", partitions=[partition])
    given.says(producers.DescribeProducersResponse(topics=[topic]))

    [result] = given.ask(describe_producers(P0, broker_id=3)).producers
    assert (result.producer_id, result.producer_epoch, result.next_sequence) == (7, 1, 10)
    assert result.transaction_start_offset is None


def test_settings_are_told_with_their_source_and_changed() -> None:
    given = Given()
    setting = configs.DescribeConfigsResourceResult(name="a", value="1", config_source=1)
    result = configs.DescribeConfigsResult(resource_type=2, resource_name="t", configs=[setting])
    given.says(configs.DescribeConfigsResponse(results=[result]))
    result = given.ask(describe_configs(ResourceKind.TOPIC, "t"))
    assert result.configs == {"a": ConfigEntry("1", ConfigSource.TOPIC, False)}

    response = alteration.AlterConfigsResourceResponse(resource_type=4, resource_name="3")
    given.says(alteration.IncrementalAlterConfigsResponse(responses=[response]))
    changes = {"x": "1", "y": None, "z": (ConfigOperation.APPEND, "2")}
    assert given.ask(alter_configs(ResourceKind.BROKER, "3", changes)).is_ok
    [asked] = given.cluster.requests(alteration.IncrementalAlterConfigsRequest)
    assert asked.broker_id == 3, "a broker's own settings are its own business"
    sent = asked.request.resources[0].configs
    assert [(each.name, each.config_operation, each.value) for each in sent] == [
        ("x", 0, "1"),
        ("y", 1, None),
        ("z", 2, "2"),
    ]


def test_elections_tell_of_each_partition() -> None:
    given = Given()
    result = election.PartitionResult(partition_id=0, error_code=84, error_message="no need")
    topic = election.ReplicaElectionResult(topic="orders", partition_result=[result])
    given.says(election.ElectLeadersResponse(replica_election_results=[topic]))

    result = given.ask(elect_leaders(PREFERRED, [P0]))
    assert result == {P0: AdminOutcome(ErrorCode.ELECTION_NOT_NEEDED, "no need")}
    given.ask(elect_leaders(PREFERRED))
    everywhere = given.cluster.requests(election.ElectLeadersRequest)[-1].request
    assert everywhere.topic_partitions is None


def test_the_quorum_is_described_by_its_leader() -> None:
    given = Given()
    partition = quorum.DescribeQuorumResponsePartition(
        leader_id=1,
        leader_epoch=4,
        high_watermark=10,
        current_voters=[quorum.ReplicaState(replica_id=1, log_end_offset=11)],
        observers=[quorum.ReplicaState(replica_id=9, log_end_offset=-1)],
    )
    topic = quorum.DescribeQuorumResponseTopic(
        topic_name="__cluster_metadata", partitions=[partition]
    )
    given.says(quorum.DescribeQuorumResponse(topics=[topic]))

    result = given.ask(describe_quorum())
    assert (result.leader_id, result.quorum_epoch, result.high_watermark) == (1, 4, 10)
    assert result.voters == (QuorumReplica(1, 11),) and result.observers == (
        QuorumReplica(9, None),
    )


def test_members_are_told_and_forgotten() -> None:
    given = Given()
    broker = members.DescribeClusterBroker(broker_id=5, host="b5", port=1, rack="r", is_fenced=True)
    given.says(members.DescribeClusterResponse(cluster_id="c", controller_id=1, brokers=[broker]))
    result = given.ask(describe_cluster(with_fenced=True))
    assert result.brokers[5].rack == "r" and result.fenced == {5}

    given.says(unregistration.UnregisterBrokerResponse())
    assert given.ask(unregister_broker(5)).is_ok


@pytest.mark.parametrize("broker_id", [1, 3])
def test_a_question_to_anybody_may_be_put_to_one_broker(broker_id: int) -> None:
    given = Given()
    given.says(members.DescribeClusterResponse(cluster_id="c"))
    given.ask(describe_cluster().to(TheBroker(broker_id)))
    assert given.cluster.requests(members.DescribeClusterRequest)[0].broker_id == broker_id
