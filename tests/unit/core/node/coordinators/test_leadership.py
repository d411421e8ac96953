"""Coordinators follow the leaders of `__consumer_offsets`: offsets survive, old answers do not."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import state, topic, topic_id
from tests.unit.core.node.broker_clients import Client, SentRequest
from tests.unit.core.node.brokers import TOPIC, Brokers
from tidelog.core.metadata.records import PartitionChangeRecord, RemoveTopicRecord
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.core.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from tidelog.core.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestTopic,
)

OFFSETS_NUMBER = 50


@pytest.fixture(name="brokers")
def three_brokers() -> Brokers:
    brokers = Brokers(1, 2, 3)
    brokers.apply(*topic(OFFSETS_TOPIC, OFFSETS_NUMBER, state(1, 2, 3)))
    brokers.run()
    return brokers


def commit(client: Client, offset: int) -> SentRequest:
    partition = OffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    of_topic = OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])
    return client.ask(OffsetCommitRequest(group_id="g", topics=[of_topic]), 9)


def fetch(client: Client) -> SentRequest:
    of_topic = OffsetFetchRequestTopic(name=TOPIC, partition_indexes=[0])
    return client.ask(OffsetFetchRequest(group_id="g", topics=[of_topic]), 7)


def elect(brokers: Brokers, leader: int, *isr: int) -> None:
    brokers.apply(
        PartitionChangeRecord(
            partition_id=0, topic_id=topic_id(OFFSETS_NUMBER), leader=leader, isr=list(isr)
        )
    )


def hold_followers(brokers: Brokers) -> None:
    """What the first broker sends to the others does not arrive."""
    brokers.held |= {(1, 2), (1, 3)}


def test_only_the_leader_coordinates(brokers: Brokers) -> None:
    refused = commit(brokers.client(2), 5)
    brokers.run()
    assert refused.code == ErrorCode.NOT_COORDINATOR


def test_a_commit_is_answered_when_the_others_have_it(brokers: Brokers) -> None:
    hold_followers(brokers)
    asked = commit(brokers.client(1), 5)
    brokers.run()
    assert not asked.is_answered

    brokers.held.clear()
    brokers.run()

    assert asked.code == ErrorCode.NONE


def test_a_fetch_waits_for_the_commit_that_it_saw(brokers: Brokers) -> None:
    """Otherwise a client could go on from an offset that no later coordinator knows."""
    hold_followers(brokers)
    commit(brokers.client(1), 5)
    seen = fetch(brokers.client(1))
    brokers.run()
    assert not seen.is_answered

    brokers.held.clear()
    brokers.run()

    assert seen.partition.committed_offset == 5


def test_the_next_leader_has_what_was_committed(brokers: Brokers) -> None:
    commit(brokers.client(1), 5)
    brokers.run()

    elect(brokers, 2, 2, 3)
    brokers.pass_time(10)
    found = fetch(brokers.client(2))
    brokers.run()

    assert found.partition.committed_offset == 5
    refused = fetch(brokers.client(1))
    brokers.run()
    assert refused.answer.error_code == ErrorCode.NOT_COORDINATOR


def test_a_coordinator_that_lost_its_partition_answers_whoever_waits(brokers: Brokers) -> None:
    """What they asked for may or may not be kept: they look for the new coordinator."""
    hold_followers(brokers)
    waiting = commit(brokers.client(1), 5)
    brokers.run()

    elect(brokers, 2, 2, 3)
    brokers.run()

    assert waiting.code == ErrorCode.NOT_COORDINATOR
    assert not brokers.nodes[1].group_coordinator.runtime.hosted


def test_a_leader_that_is_elected_again_loads_again(brokers: Brokers) -> None:
    commit(brokers.client(1), 5)
    brokers.run()
    elect(brokers, 1, 1, 2, 3)
    brokers.pass_time(10)
    found = fetch(brokers.client(1))
    brokers.run()
    assert found.partition.committed_offset == 5


def test_a_deleted_topic_loses_its_offsets(brokers: Brokers) -> None:
    commit(brokers.client(1), 5)
    brokers.run()

    brokers.apply(RemoveTopicRecord(topic_id=topic_id(7)))
    brokers.run()

    found = fetch(brokers.client(1))
    brokers.run()
    assert found.partition.committed_offset == -1
    hosted = brokers.nodes[1].group_coordinator.runtime.hosted[0]
    assert not hosted.shard.offsets.of_group("g")


def test_a_deleted_offsets_topic_has_no_coordinator(brokers: Brokers) -> None:
    brokers.apply(RemoveTopicRecord(topic_id=topic_id(OFFSETS_NUMBER)))
    asked = commit(brokers.client(1), 5)
    brokers.run()
    assert asked.code == ErrorCode.NOT_COORDINATOR
    brokers.nodes[1].group_coordinator.check()
