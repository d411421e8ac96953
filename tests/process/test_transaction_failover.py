"""Brokers die in the middle of transactions of unmodified clients: what was decided stands."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import confluent_kafka
import pytest

from tests.process.java_transactions import JavaTransactions
from tests.process.python_transactions import PYTHON_CLIENTS
from tests.process.target import IS_KAFKA
from tests.process.transactional_clients import (
    COMMITTED,
    UNCOMMITTED,
    TransactionalClient,
)
from tests.process.transactional_cluster import BROKERS, TransactionalCluster, running_brokers
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import segment_files

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("transaction-failover"),
]

LONG = (pytest.mark.long, pytest.mark.rotating(3))
CLIENTS = [
    "librdkafka",
    *(pytest.param(each.name, marks=LONG) for each in PYTHON_CLIENTS[1:]),
    pytest.param("java", marks=[pytest.mark.java, *LONG]),
]
WORDS = ("a", "b", "c")
SEGMENT_BYTES = 1 << 20


@pytest.fixture(scope="module", name="running")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransactionalCluster]:
    with running_brokers(tmp_path_factory.mktemp("failover")) as cluster:
        yield cluster


@pytest.fixture
def brokers(running: TransactionalCluster) -> Iterator[TransactionalCluster]:
    """The module's cluster, which is whole again after each test."""
    yield running
    dead = [each for each in BROKERS if not running.cluster.is_running(each)]
    running.start(*dead)


@pytest.fixture(scope="module", params=CLIENTS)
def client(request: pytest.FixtureRequest) -> Iterator[TransactionalClient]:
    name: str = request.param
    if name == "java":
        with JavaTransactions() as machine:
            yield machine
    else:
        [known] = [each for each in PYTHON_CLIENTS if each.name == name]
        yield known


def values(
    client: TransactionalClient,
    brokers: TransactionalCluster,
    topic: str,
    isolation: str = COMMITTED,
) -> list[str]:
    found = client.read(brokers.servers, topic, isolation=isolation, partitions=len(WORDS))
    return [each.value for each in found]


@pytest.mark.scenario("X-28", "D4-T5", "D4-C3")
def test_what_was_committed_stands_though_all_brokers_are_killed(
    brokers: TransactionalCluster, client: TransactionalClient
) -> None:
    """Kill -9 as soon as the commit is answered: its markers are written by whoever comes back."""
    topic, source = brokers.new_topic(partitions=len(WORDS)), brokers.new_topic()
    brokers.fill(source, ["input"])
    with closing(client.producer(brokers.servers, topic)) as producer:
        producer.init()
        with closing(client.member(brokers.servers, source, topic)) as member:
            [taken] = member.take(1)
            producer.begin()
            for partition, word in enumerate(WORDS):
                producer.send(topic, word, partition=partition)
            producer.send_offsets(source, {0: taken.offset + 1}, member)
        producer.commit()

        brokers.kill(*BROKERS)

    brokers.start(*BROKERS)
    brokers.wait_until_ended(topic)
    assert brokers.describe(topic).state == "CompleteCommit"
    assert values(client, brokers, topic) == list(WORDS)
    wait_until(lambda: brokers.committed(topic, source) == 1, "the offset to count")


@pytest.mark.scenario("D4-T2", "D4-T9", "X-28")
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_the_coordinator_is_killed_between_writes_and_the_end(
    brokers: TransactionalCluster, client: TransactionalClient, commits: bool
) -> None:
    """Its successor knows the transaction, and ends it as the producer says."""
    if client.name == "kafka-python":
        pytest.skip("it forgets its EndTxn when the coordinator's address refuses it (3.0.12)")
    topic = brokers.new_topic(partitions=len(WORDS))
    with closing(client.producer(brokers.servers, topic)) as producer:
        producer.init()
        producer.begin()
        for partition, word in enumerate(WORDS):
            producer.send(topic, word, partition=partition)
        before, coordinator = brokers.describe(topic), brokers.coordinator(topic)

        brokers.kill(coordinator)

        wait_until(lambda: brokers.coordinator(topic) != coordinator, "another coordinator")
        assert brokers.describe(topic) == before
        producer.commit() if commits else producer.abort()
        brokers.wait_until_ended(topic)
    assert values(client, brokers, topic) == (list(WORDS) if commits else [])
    assert values(client, brokers, topic, UNCOMMITTED) == list(WORDS)


@pytest.mark.long
@pytest.mark.scenario("D4-T2", "D4-T10")
def test_leaders_are_killed_in_turn_in_one_transaction(
    brokers: TransactionalCluster, client: TransactionalClient
) -> None:
    """Each partition is written before and after its leader dies, the group's offsets too."""
    topic, source = brokers.new_topic(partitions=len(WORDS)), brokers.new_topic()
    brokers.fill(source, ["input"])
    with closing(client.producer(brokers.servers, topic)) as producer:
        producer.init()
        with closing(client.member(brokers.servers, source, topic)) as member:
            [taken] = member.take(1)
            producer.begin()
            for partition, word in enumerate(WORDS):
                producer.send(topic, word, partition=partition)
            producer.send_offsets(source, {0: taken.offset + 1}, member)
        for partition, word in enumerate(WORDS):
            leader = brokers.cluster.leader(topic, partition)
            assert leader is not None
            brokers.kill(leader)
            producer.send(topic, word.upper(), partition=partition)
            brokers.start(leader)
        producer.commit()
        brokers.wait_until_ended(topic)
    assert values(client, brokers, topic) == ["a", "A", "b", "B", "c", "C"]
    wait_until(lambda: brokers.committed(topic, source) == 1, "the offset to count")


@pytest.mark.long
@pytest.mark.scenario("D4-T2", "D4-T10")
def test_brokers_are_restarted_gently_in_one_transaction(
    brokers: TransactionalCluster, client: TransactionalClient
) -> None:
    """Aborted ranges and open transactions are known again after a restart."""
    topic = brokers.new_topic(partitions=len(WORDS))
    with closing(client.producer(brokers.servers, topic)) as producer:
        producer.init()
        for end in (producer.abort, producer.commit):
            producer.begin()
            for partition, word in enumerate(WORDS):
                producer.send(topic, word, partition=partition)
            for broker in BROKERS:
                assert brokers.cluster.stop_node(broker) in (0, 143)
                brokers.start(broker)
            producer.send(topic, "more", partition=0)
            end()
            brokers.wait_until_ended(topic)
    assert values(client, brokers, topic) == ["a", "more", "b", "c"]
    everything = values(client, brokers, topic, UNCOMMITTED)
    assert everything == ["a", "more"] * 2 + ["b"] * 2 + ["c"] * 2


@pytest.mark.scenario("D4-T1", "D4-X2")
def test_who_dies_between_two_sends_leaves_one_or_nothing(
    brokers: TransactionalCluster, client: TransactionalClient
) -> None:
    """Idempotence keeps one record once; only a transaction keeps two together."""
    plain, topic = brokers.new_topic(), brokers.new_topic(partitions=len(WORDS))
    idempotent = {"bootstrap.servers": brokers.servers, "enable.idempotence": True}
    first = confluent_kafka.Producer(idempotent)
    first.produce(plain, "first")
    assert first.flush(PATIENCE_S) == 0
    del first  # it dies before the second send
    dead = client.producer(brokers.servers, topic)
    dead.init()
    dead.begin()
    dead.send(topic, "first", partition=0)
    dead.close()

    with closing(client.producer(brokers.servers, topic)) as successor:
        successor.init()
    brokers.wait_until_ended(topic)

    found = client.read(brokers.servers, plain)
    assert [each.value for each in found] == ["first"]
    assert values(client, brokers, topic) == []


@pytest.mark.long
@pytest.mark.scenario("D4-T10", "D4-Z4", "N43")
def test_aborted_ranges_span_segments_and_restarts(
    brokers: TransactionalCluster, client: TransactionalClient
) -> None:
    """Every second transaction is aborted, each longer than a segment; one of another producer
    spans all of them. Nothing of it is forgotten with the brokers' memory."""
    topic = brokers.new_topic(partitions=len(WORDS), segment_bytes=str(SEGMENT_BYTES))
    letters = "abcdef"
    with (
        closing(client.producer(brokers.servers, f"{topic}-long")) as long,
        closing(client.producer(brokers.servers, topic)) as producer,
    ):
        for each in (long, producer):
            each.init()
        long.begin()
        long.send(topic, "long")
        for letter in letters:
            producer.begin()
            for _ in range(3):
                producer.send(topic, letter * (SEGMENT_BYTES // 2))
            producer.commit() if letter in "ace" else producer.abort()
            brokers.wait_until_ended(topic)
        long.send(topic, "long")
        long.abort()
        brokers.wait_until_ended(f"{topic}-long")
    leader = brokers.cluster.leader(topic)
    assert leader is not None
    directory = brokers.cluster.nodes[leader].data_path
    assert len(segment_files(directory, topic)) > len(letters)

    for _ in range(2):
        found = [value[0] for value in values(client, brokers, topic)]
        assert found == list("aaaccceee")
        everything = [value[0] for value in values(client, brokers, topic, UNCOMMITTED)]
        assert everything == list("laaabbbcccdddeeefffl")
        brokers.kill(*BROKERS)
        brokers.start(*BROKERS)
