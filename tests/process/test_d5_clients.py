"""Document 5 on real processes: where leaders are, and how clients find them."""

from __future__ import annotations

from contextlib import closing
from functools import partial

import confluent_kafka.admin
import pytest

from tests.process.evidence import lead_as_preferred
from tests.process.producers import KafkaPython, Librdkafka, Ok, ProducerOptions
from tests.process.stage import Stage
from tests.process.target import IS_KAFKA
from tests.process.timelines import Crew
from tests.process.waiting import wait_until

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("d5"),
]

METADATA = 3
REFRESH_MS = 300


def asked_for_metadata(stage: Stage, broker: int, client: str) -> int:
    """How often a client asked this broker."""
    return sum(
        seen.api_key == METADATA and client in (seen.client_id or "")
        for seen in list(stage.proxies[broker].requests)
    )


@pytest.mark.scenario("D5-P1", "D5-P2", "N45")
def test_leaders_of_a_new_topic_are_spread(stage: Stage) -> None:
    """Three partitions on three brokers: each broker leads one and follows two, in stripes; with an
    assignment of one's own they are exactly as it says."""
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": stage.bootstrap})
    wanted = [[1, 2, 3], [2, 3, 1], [3, 1, 2]]
    new = [
        confluent_kafka.admin.NewTopic("spread", num_partitions=3, replication_factor=3),
        confluent_kafka.admin.NewTopic("exact", num_partitions=3, replica_assignment=wanted),
    ]
    for done in admin.create_topics(new).values():
        done.result()

    def replicas(topic: str) -> list[list[int]]:
        told = [stage.cluster.partition_view(topic, partition, via=1) for partition in range(3)]
        assert all(each is not None and each.leader == each.replicas[0] for each in told)
        return [each.replicas for each in told if each is not None]

    wait_until(lambda: stage.cluster.partition_view("exact", 2, via=1), "the topics")
    assert replicas("exact") == wanted
    spread = replicas("spread")
    leaders = [each[0] for each in spread]
    assert sorted(leaders) == [1, 2, 3]
    assert all(sorted(each) == [1, 2, 3] for each in spread)
    assert all(leaders[at] % 3 + 1 == leaders[(at + 1) % 3] for at in range(3)), "in stripes"


@pytest.mark.scenario("D5-C1", "D5-R9")
def test_any_broker_shows_the_way_and_only_the_leader_is_written_to(stage: Stage) -> None:
    """Each single broker will do to begin with: the client asks it for metadata and sends straight
    to the leader. A dead one among several is passed over."""
    topic = stage.new_topic((2, 1, 3))
    offset = 0
    for bootstrap in (1, 2, 3):
        address = stage.proxies[bootstrap].address
        for client, kind in (("rdkafka", Librdkafka), ("kafka-python", KafkaPython)):
            stage.forget_requests()
            value = f"{client}-{bootstrap}"
            with closing(kind(address, ProducerOptions())) as producer:
                assert producer.send(topic, value).wait() == Ok(offset)
            offset += 1
            assert asked_for_metadata(stage, bootstrap, client) > 0
            assert [stage.asked_for(broker, value) for broker in (1, 2, 3)] == [[], [0], []]

    stage.kill(1)
    addresses = f"{stage.proxies[1].address},{stage.proxies[3].address}"
    for kind in (Librdkafka, KafkaPython):
        with closing(kind(addresses, ProducerOptions())) as producer:
            assert producer.send(topic, "dead first").wait() == Ok(offset)
        offset += 1


def _asked_anybody(stage: Stage, client: str) -> int:
    return sum(asked_for_metadata(stage, broker, client) for broker in stage.proxies)


def _told_metadata(stage: Stage, client: str) -> bool:
    """Whether anybody has answered it, who was asked since requests were forgotten."""
    return any(
        asked.api_key == METADATA and client in (asked.client_id or "")
        for proxy in stage.proxies.values()
        for asked, _ in list(proxy.answers)
        if asked in proxy.requests
    )


@pytest.mark.scenario("D5-B4", "D3-D10")
def test_an_idle_client_learns_of_a_move_by_itself(stage: Stage) -> None:
    """Nobody writes while the leadership moves. Metadata grows old and is asked for again, so the
    next record goes to the new leader at once, and no old one has to refuse it."""
    topic = stage.new_topic(*[(1, 2, 3)] * 2)
    stage.kill(1)
    stage.restart(1)
    for partition in (0, 1):
        stage.cluster.wait_until_in_sync(topic, partition)
    every = {"topic.metadata.refresh.interval.ms": REFRESH_MS, "client.id": "librdkafka"}
    crew = Crew(
        {
            "librdkafka": Librdkafka(stage.bootstrap, ProducerOptions(), **every),
            "kafka-python": KafkaPython(stage.bootstrap, ProducerOptions()),
        }
    )
    crew.send(topic, "before").wait_for(Ok(0))
    for partition in (0, 1):
        lead_as_preferred(stage.cluster, topic, 1, partition=partition, by=2)
    stage.forget_requests()

    for client in crew.producers:
        wait_until(partial(_told_metadata, stage, client), f"{client} to be told")
        before = _asked_anybody(stage, client)
        wait_until(
            # A question that comes after an answer shows that the answer was taken in.
            partial(lambda c, n: _asked_anybody(stage, c) > n, client, before),
            f"{client} to ask again",
        )
    crew.send(topic, "after").wait_for(Ok(1))
    assert sorted(stage.asked_for(1, "after")) == [0, 1]
    assert stage.asked_for(2, "after") == stage.asked_for(3, "after") == []
    for producer in crew.producers.values():
        producer.close()
