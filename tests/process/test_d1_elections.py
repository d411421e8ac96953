"""Document 1 on real processes: why leaders change, and how an idempotent producer goes on."""

from __future__ import annotations

import pytest

from tests.process.evidence import (
    events,
    lead_as_preferred,
    produce_by_hand,
    produce_errors,
    sent_headers,
)
from tests.process.producers import Ok
from tests.process.stage import Stage
from tests.process.target import IS_KAFKA
from tests.process.timelines import EVERY_CLIENT, StartCrew, StartProducer
from tests.process.wire import batch_of
from tidelog.core.model.errors import ErrorCode

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("d1"),
]

METADATA = 3
RECORDS = 50


def wait_until_led(stage: Stage, topic: str, leader: int, partitions: int) -> None:
    for partition in range(partitions):
        stage.wait_for(topic, lambda it: it.leader == leader, partition=partition, via=leader)


@pytest.mark.scenario("D1-P1", "D1-P2", "D1-P3", "D1-P4", "D5-F2", "N13", "N21")
@pytest.mark.parametrize("clients", EVERY_CLIENT)
def test_a_dead_leader_answers_nothing_and_the_same_batch_goes_to_the_next(
    stage: Stage, start_crew: StartCrew, clients: tuple[str, ...]
) -> None:
    """The producer hears no error when the leader dies: it asks another broker for the new leader,
    and sends it the batch with the same producer id and the same sequences."""
    crew = start_crew(clients)
    topic = stage.new_topic(*[(1, 2, 3)] * len(clients))
    crew.send(topic, "before").wait_for(Ok(0))
    holds = [stage.hold_back(each, leader=1) for each in (2, 3)]
    calls = crew.send(topic, "order")
    for partition in crew.partitions.values():
        stage.wait_for_end(topic, 2, of=1, partition=partition)
    assert calls.all_are(None)
    first = {header.producer_id: header for header in sent_headers(stage, 1, "order")}
    stage.forget_requests()

    stage.kill(1)
    for hold in holds:
        hold.lose()
    calls.wait_for(Ok(1))

    assert produce_errors(stage, 1, "order") == []
    again = sent_headers(stage, 2, "order")
    assert {header.producer_id for header in again} == first.keys()
    for header in again:
        before = first[header.producer_id]
        assert (header.producer_epoch, header.base_sequence, header.size_bytes) == (
            before.producer_epoch,
            before.base_sequence,
            before.size_bytes,
        )
    resent_s = {seen.client_id: seen.at_s for seen in stage.proxies[2].produce_requests()}
    for client_id, at_s in resent_s.items():
        assert any(
            seen.api_key == METADATA and seen.client_id == client_id and seen.at_s < at_s
            for broker in (2, 3)
            for seen, _ in stage.proxies[broker].answers
        ), f"{client_id} heard from nobody who leads"


@pytest.mark.scenario("D1-T4", "D1-P2", "D1-P3", "D1-P4", "N21")
@pytest.mark.parametrize("clients", EVERY_CLIENT)
def test_a_demoted_leader_says_so_and_names_its_successor(
    stage: Stage, start_crew: StartCrew, clients: tuple[str, ...]
) -> None:
    """A preferred election takes the leadership from a living broker. Whoever waits there for an
    answer is told NOT_LEADER_OR_FOLLOWER and goes to the new one: one copy, at its old place."""
    crew = start_crew(clients)
    topic = stage.new_topic(*[(1, 2, 3)] * len(clients))
    stage.kill(1)
    wait_until_led(stage, topic, 2, len(clients))
    stage.restart(1)
    for partition in crew.partitions.values():
        stage.cluster.wait_until_in_sync(topic, partition)
    crew.send(topic, "before").wait_for(Ok(0))
    hold = stage.hold_back(3, leader=2)
    calls = crew.send(topic, "order")
    for partition in crew.partitions.values():
        stage.wait_for_end(topic, 2, of=1, partition=partition)
    assert calls.all_are(None)
    leader_epoch = stage.wait_for(topic, lambda it: it.leader == 2, via=3).leader_epoch

    for partition in crew.partitions.values():
        lead_as_preferred(stage.cluster, topic, 1, partition=partition, by=3)
    hold.release()
    calls.wait_for(Ok(1))

    moved = stage.wait_for(topic, lambda it: it.leader == 1, via=2)
    assert moved.leader_epoch == leader_epoch + 1
    refused = produce_errors(stage, 2, "order")
    assert set(refused) == {ErrorCode.NOT_LEADER_OR_FOLLOWER} and len(refused) >= len(clients)
    assert set(stage.asked_for(1, "order")) == set(crew.partitions.values())
    answer, endpoints = produce_by_hand(stage.cluster, topic, batch_of(b"by hand"), to=2)
    assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert (answer.current_leader.leader_id, answer.current_leader.leader_epoch) == (
        1,
        leader_epoch + 1,
    )
    assert [f"{each.host}:{each.port}" for each in endpoints] == [stage.proxies[1].address]
    assert crew.stored(stage, topic, leader=1) == crew.each("before", "order")


@pytest.mark.scenario("D1-T2")
@pytest.mark.parametrize("clients", EVERY_CLIENT)
def test_a_leader_that_is_shut_down_hands_over_before_it_goes(
    stage: Stage, start_crew: StartCrew, clients: tuple[str, ...]
) -> None:
    """SIGTERM under load: broker 1 itself follows 2 before its process ends, no session is waited
    for, and no producer hears of it: every record is there once and in order."""
    crew = start_crew(clients)
    topic = stage.new_topic(*[(1, 2, 3)] * len(clients), min_insync_replicas="2")
    crew.send(topic, "before").wait_for(Ok(0))
    before = [str(number) for number in range(RECORDS)]
    after = [str(number) for number in range(RECORDS, 2 * RECORDS)]
    sent = [crew.send(topic, value) for value in before]

    assert stage.cluster.stop_node(1) == 0
    stage.kill(1)  # It is over; nobody listens at its proxy either.
    sent += [crew.send(topic, value) for value in after]
    for number, calls in enumerate(sent):
        calls.wait_for(Ok(number + 1))

    for partition in crew.partitions.values():
        [handed_over] = events(
            stage.cluster, 1, "BecameFollower", f"partition={topic}-{partition}", "leader_id=2"
        )
        stopping = events(stage.cluster, 1, "BrokerStopping")[-1]
        stopped = events(stage.cluster, 1, "NodeStopped")[-1]
        assert stopping.at_s <= handed_over.at_s <= stopped.at_s
        standing = stage.wait_for(topic, lambda it: True, partition=partition, via=3)
        assert (standing.leader, standing.leader_epoch, standing.isr) == (2, 1, [2, 3])
    assert crew.stored(stage, topic, leader=2) == crew.each("before", *before, *after)


@pytest.mark.scenario("D1-S1", "D1-S5", "N22")
@pytest.mark.parametrize("clients", EVERY_CLIENT)
def test_a_restarted_producer_is_another_one(
    stage: Stage, start_producer: StartProducer, clients: tuple[str, ...]
) -> None:
    """Without a transactional id a new session gets a new producer id and counts from 0; so what it
    sends again is stored again: no broker can know that it is the same."""
    for client in clients:
        topic = stage.new_topic((1, 2, 3))
        for session in range(2):
            producer = start_producer(client)
            told = [producer.send(topic, value).wait() for value in ("first", "second")]
            assert told == [Ok(2 * session), Ok(2 * session + 1)]
        assert stage.values(topic, leader=1) == ["first", "second"] * 2
        headers = stage.headers(topic, of=1)
        assert [header.base_sequence for header in headers] == [0, 1, 0, 1]
        assert {header.producer_epoch for header in headers} == {0}
        ids = [header.producer_id for header in headers]
        assert ids[0] == ids[1] != ids[2] == ids[3]
