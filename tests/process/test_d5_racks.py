"""Document 5 on real processes: brokers 1, 2 in rack a, 3, 4 in rack b, and a controller apart."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

import confluent_kafka.admin
import kafka.admin
import pytest

from tests.process.evidence import lead_as_preferred
from tests.process.producers import Librdkafka, Ok, ProducerOptions
from tests.process.proxy import FETCH
from tests.process.readers import KafkaPythonReader, LibrdkafkaReader
from tests.process.stage import Stage, running_stage
from tests.process.target import IS_KAFKA
from tests.process.timelines import StartCrew, StartProducer
from tests.process.waiting import wait_until
from tidelog.core.model.replication_settings import RACK_AWARE_SELECTOR

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("d5-racks"),
]

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}
CONTROLLER = 5
R8 = [[1, 3], [3, 2], [4, 1]]
"""The document's own assignment."""
RECORDS = 100
RECORD_BYTES = 1_000


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with running_stage(
        tmp_path_factory.mktemp("racks"),
        roles=(*["broker"] * len(RACKS), "controller"),
        settings={"replica.selector.class": RACK_AWARE_SELECTOR},
        settings_of={broker: {"broker.rack": rack} for broker, rack in RACKS.items()},
    ) as stage:
        yield stage


def new_topic(stage: Stage, name: str, **wanted: Any) -> None:
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": stage.bootstrap})
    admin.create_topics([confluent_kafka.admin.NewTopic(name, **wanted)])[name].result()


@pytest.mark.scenario("D5-R1", "D5-R4", "D5-R8", "N45")
def test_brokers_tell_their_racks_and_replicas_are_spread_over_them(stage: Stage) -> None:
    """With two copies each partition has one in each rack and leaders are even; the document's own
    assignment is taken as it is, and leads one to two."""
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=stage.bootstrap.split(","))
    with closing(admin):
        brokers = admin.describe_cluster()["brokers"]
        told = {
            broker.get("node_id", broker.get("broker_id")): broker["rack"] for broker in brokers
        }
    assert told == RACKS
    new_topic(stage, "fifty", num_partitions=50, replication_factor=2)
    new_topic(stage, "manual", num_partitions=3, replica_assignment=R8)
    for topic, partition in (("fifty", 49), ("manual", 2)):
        for broker in RACKS:
            wait_until(
                partial(stage.cluster.partition_view, topic, partition, via=broker),
                f"{topic} on broker {broker}",
            )

    placed = [stage.cluster.partition_view("fifty", partition, via=2) for partition in range(50)]
    assert all(each and sorted(RACKS[b] for b in each.replicas) == ["a", "b"] for each in placed)
    leaders = Counter(each.leader for each in placed if each)
    in_racks = Counter(RACKS[each.leader] for each in placed if each)
    assert max(leaders.values()) - min(leaders.values()) <= 1
    assert max(in_racks.values()) - min(in_racks.values()) <= 1
    manual = [stage.cluster.partition_view("manual", partition, via=3) for partition in range(3)]
    assert [each.replicas for each in manual if each] == R8
    assert Counter(RACKS[each.leader] for each in manual if each) == {"a": 1, "b": 2}


@pytest.mark.scenario("D5-R9", "D5-R10")
def test_producers_ignore_racks_and_data_crosses_them(
    stage: Stage, record_property: Callable[[str, object], None]
) -> None:
    """A producer in rack a writes to the leader in rack b, whether it names its rack or not; its
    records go back to the follower in a by replication: the bytes are counted on the way."""
    topic = stage.new_topic((3, 1))
    for place, named in enumerate(({}, {"client.rack": "a"})):
        with closing(Librdkafka(stage.bootstrap, ProducerOptions(), **named)) as producer:
            assert producer.send(topic, str(place), size=RECORD_BYTES).wait() == Ok(place)
        assert [stage.asked_for(broker, str(place)) for broker in RACKS] == [[], [], [0], []]
    crossing: Counter[str] = Counter()
    for leader, proxy in stage.proxies.items():
        for asked, frame in list(proxy.answers):
            follower = (asked.client_id or "").removeprefix("node-")
            if asked.api_key == FETCH and follower.isdecimal():
                crossing[f"{RACKS[leader]} to {RACKS[int(follower)]}"] += len(frame)
    record_property("bytes between racks", dict(crossing))
    assert crossing["b to a"] >= 2 * RECORD_BYTES


@pytest.mark.scenario("D5-R11")
def test_consumers_read_in_their_rack_and_go_back_to_the_leader(
    stage: Stage, start_producer: StartProducer
) -> None:
    """Consumers in rack a are sent from the leader in b to the follower in a and read there. When
    that dies they go back to the leader. Nothing is missed and nothing comes twice."""
    topic = stage.new_topic((3, 1))
    producer = start_producer("librdkafka")
    rack: dict[str, Any] = {"client.rack": "a"}
    readers: dict[str, LibrdkafkaReader | KafkaPythonReader] = {
        "rdkafka": LibrdkafkaReader(stage.bootstrap, topic, **rack),
        "kafka-python": KafkaPythonReader(stage.bootstrap, topic, client_rack="a"),
    }
    sent: list[str] = []

    def write_and_read(text: str) -> None:
        sent.append(text)
        assert producer.send(topic, text).wait() == Ok(len(sent) - 1)
        for reader in readers.values():
            reader.read_until(text)

    with ExitStack() as stack:
        for reader in readers.values():
            stack.enter_context(closing(reader))
        write_and_read("first")
        for client in readers:
            wait_until(partial(_fetches, stage, 1, client), f"{client} to fetch in its rack")
        stage.forget_requests()
        write_and_read("second")
        for client, reader in readers.items():  # It may have come with a fetch from before.
            wait_until(
                partial(lambda c, r: r.read() == 0 and _fetches(stage, 1, c) > 0, client, reader),
                f"{client} to fetch in its rack again",
            )
        assert _fetches(stage, 3, "rdkafka") == 0

        stage.kill(1)
        write_and_read("third")
        for reader in readers.values():
            assert reader.records == list(enumerate(sent))
            assert reader.errors == []


@pytest.mark.scenario("D3-T6b", "N56")
def test_a_follower_serves_its_rack_on_though_nobody_leads(
    stage: Stage, start_producer: StartProducer
) -> None:
    """Leader and controller are dead, so nobody is elected; the follower still gives consumers all
    that it knows as committed, and tells them of no other leader."""
    topic = stage.new_topic((3, 1))
    producer = start_producer("librdkafka")
    assert [producer.send(topic, text).wait() for text in "abc"] == [Ok(0), Ok(1), Ok(2)]
    with stage.cluster.wire(1) as wire:
        wait_until(lambda: wire.fetch(topic, 0).high_watermark == 3, "the follower to know")
        stage.cluster.kill(CONTROLLER)
        try:
            stage.kill(3)
            assert [record.value for record in wire.read_all(topic)] == [b"a", b"b", b"c"]
            standing = stage.cluster.partition_view(topic, 0, via=1)
            assert standing is not None and (standing.leader, standing.leader_epoch) == (3, 0)
        finally:
            stage.cluster.launch_node(CONTROLLER)


def _fetches(stage: Stage, broker: int, client: str) -> int:
    return sum(
        seen.api_key == FETCH and client in (seen.client_id or "")
        for seen in list(stage.proxies[broker].requests)
    )


@pytest.mark.scenario("D5-R12", "D5-B1", "D5-B5", "D5-B6", "D5-F2", "D3-T14", "N46", "N47")
def test_a_whole_rack_is_killed_and_comes_back(stage: Stage, start_crew: StartCrew) -> None:
    """The document's own assignment: rack a dies, what it led is led in rack b, the rest keeps its
    leaders and loses followers, every broker says so, and producers go on without an error. When a
    is back, so are its replicas, and a preferred election gives it its leadership again."""
    clients = ("librdkafka", "kafka-python", "tidelog")
    crew = start_crew(clients)
    topic = stage.new_topic(*map(tuple, R8), min_insync_replicas="1")
    sent = [crew.send(topic, str(number)) for number in range(RECORDS)]
    _kill_rack_a(stage)
    sent += [crew.send(topic, str(number)) for number in range(RECORDS, 2 * RECORDS)]
    for number, calls in enumerate(sent):
        calls.wait_for(Ok(number))

    for partition, (leader, leader_epoch) in enumerate([(3, 1), (3, 0), (4, 0)]):
        for witness in (3, 4):
            standing = stage.wait_for(
                topic,
                partial(lambda b, it: it.isr == [b], leader),
                partition=partition,
                via=witness,
            )
            assert (standing.leader, standing.leader_epoch) == (leader, leader_epoch)
            assert standing.replicas == R8[partition]
        values = stage.values(topic, leader=leader, partition=partition)
        assert values == [str(number) for number in range(2 * RECORDS)]

    stage.launch(1)
    stage.restart(2)
    for partition in range(3):
        stage.wait_for(topic, lambda it: len(it.isr) == 2, partition=partition, via=4)
    lead_as_preferred(stage.cluster, topic, 1, by=2)
    back = stage.wait_for(topic, lambda it: it.leader == 1, via=4)
    assert sorted(back.isr) == [1, 3] and back.leader_epoch == 2
    assert stage.headers(topic, of=1) == stage.headers(topic, of=3)


def _kill_rack_a(stage: Stage) -> None:
    for broker, rack in RACKS.items():
        if rack == "a":
            stage.kill(broker)
