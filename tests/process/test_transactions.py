"""Transactions of unmodified clients on three brokers: all of it is read, or nothing."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest
from confluent_kafka.admin import AdminClient

from tests.process.java_transactions import JavaTransactions
from tests.process.python_transactions import PYTHON_CLIENTS
from tests.process.target import IS_KAFKA
from tests.process.transactional_clients import (
    COMMITTED,
    UNCOMMITTED,
    Refused,
    TransactionalClient,
    TransactionalProducer,
)
from tests.process.transactional_cluster import (
    RACKS,
    Fences,
    TransactionalCluster,
    running_brokers,
)
from tests.process.waiting import PATIENCE_S, wait_until

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("transactions"),
]

CLASSIC = "java-classic"
LONG = (pytest.mark.long, pytest.mark.rotating(3))
CLIENTS = [
    "librdkafka",
    "aiokafka",
    pytest.param("kafka-python", marks=LONG),
    pytest.param("java", marks=[pytest.mark.java, *LONG]),
    pytest.param(CLASSIC, marks=[pytest.mark.java, *LONG]),
]
"""Those in Python speak the older protocol. Java speaks the newer one, unless the cluster's
`transaction.version` is lowered."""
FILLERS = [f"filler-{number}" for number in range(100)]


@pytest.fixture(scope="module")
def brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransactionalCluster]:
    with running_brokers(tmp_path_factory.mktemp("transactions")) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def java_client() -> Iterator[JavaTransactions]:
    with JavaTransactions() as machine:
        yield machine


@pytest.fixture(scope="module", params=CLIENTS)
def client(
    request: pytest.FixtureRequest, brokers: TransactionalCluster
) -> Iterator[TransactionalClient]:
    name: str = request.param
    for known in PYTHON_CLIENTS:
        if known.name == name:
            yield known
            return
    if name == CLASSIC:
        brokers.set_transaction_version(0, is_lower=True)
    yield request.getfixturevalue("java_client")
    if name == CLASSIC:
        brokers.set_transaction_version(2, is_lower=False)


def values(
    client: TransactionalClient,
    brokers: TransactionalCluster,
    topic: str,
    isolation: str = COMMITTED,
    partitions: int = 1,
) -> list[str]:
    found = client.read(brokers.servers, topic, isolation=isolation, partitions=partitions)
    return [each.value for each in found]


@pytest.mark.scenario(
    "D4-T2",
    "D4-T3",
    "D4-T4",
    "D4-T5",
    "D4-T7",
    "D4-T8",
    "D4-T10",
    "D4-F1",
    "D4-F2",
    "D4-F3",
    "N42",
)
def test_a_commit_is_read_whole_and_an_abort_not_at_all(
    brokers: TransactionalCluster, client: TransactionalClient
) -> None:
    """Two topics, three partitions each. Whoever reads uncommitted records sees both kinds."""
    first, second = brokers.new_topic(partitions=3), brokers.new_topic(partitions=3)
    places = [(first, 0), (first, 2), (second, 1)]
    with closing(client.producer(brokers.servers, first)) as producer:
        producer.init()
        before = brokers.describe(first)
        for word, end in (("kept", producer.commit), ("undone", producer.abort)):
            producer.begin()
            for topic, partition in places:
                producer.send(topic, f"{word}-{topic}-{partition}", partition=partition)
            if word == "kept":
                assert values(client, brokers, first, partitions=3) == []
                assert len(values(client, brokers, first, UNCOMMITTED, partitions=3)) == 2
            assert brokers.describe(first).state == "Ongoing"
            end()
            brokers.wait_until_ended(first)
    has_epoch_per_transaction = client.name == "java" and brokers.transaction_version == 2
    raised = brokers.describe(first).producer_epoch - before.producer_epoch
    assert raised == (2 if has_epoch_per_transaction else 0)

    kept = {topic: [f"kept-{t}-{p}" for t, p in places if t == topic] for topic in (first, second)}
    undone = [f"undone-{topic}-{partition}" for topic, partition in places]
    for topic in (first, second):
        assert values(client, brokers, topic, partitions=3) == kept[topic]
        everything = values(client, brokers, topic, UNCOMMITTED, partitions=3)
        assert sorted(everything) == sorted(kept[topic] + [u for u in undone if topic in u])


@pytest.mark.scenario("D3-A3", "D4-T6", "D4-T10", "N37", "N43")
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_an_open_transaction_holds_the_last_stable_offset(
    brokers: TransactionalCluster, client: TransactionalClient, commits: bool
) -> None:
    """100 A committed, 101 B and 102 C open, 103 D committed; markers at 104 and 105."""
    topic = brokers.new_topic()
    brokers.fill(topic, FILLERS)
    owners = {name: client.producer(brokers.servers, f"{topic}-{name}") for name in "ABD"}
    for name, records in {"A": "A", "B": "BC", "D": "D"}.items():
        owners[name].init()
        owners[name].begin()
        for value in records:
            owners[name].send(topic, value)
    for name in "AD":
        owners[name].commit()
        brokers.wait_until_ended(f"{topic}-{name}")

    assert brokers.fences(topic) == Fences(last_stable_offset=101, high_watermark=106)
    assert values(client, brokers, topic) == [*FILLERS, "A"]
    assert values(client, brokers, topic, UNCOMMITTED) == [*FILLERS, *"ABCD"]

    owners["B"].commit() if commits else owners["B"].abort()
    brokers.wait_until_ended(f"{topic}-B")

    assert brokers.fences(topic) == Fences(last_stable_offset=107, high_watermark=107)
    assert values(client, brokers, topic) == [*FILLERS, *("ABCD" if commits else "AD")]
    assert values(client, brokers, topic, UNCOMMITTED) == [*FILLERS, *"ABCD"]
    for producer in owners.values():
        producer.close()


@pytest.mark.scenario("D1-S2", "D1-S3", "D4-I4", "N22")
def test_the_next_producer_of_an_id_fences_the_one_before(
    brokers: TransactionalCluster, client: TransactionalClient
) -> None:
    """Same producer id, the next epoch. What the older one had open is aborted, and what it still
    tries does not reach the log."""
    topic = brokers.new_topic()
    zombie = client.producer(brokers.servers, topic)
    zombie.init()
    before = brokers.describe(topic)
    with closing(client.producer(brokers.servers, topic)) as between:
        between.init()
    after = brokers.describe(topic)
    assert after.producer_id == before.producer_id
    assert after.producer_epoch == before.producer_epoch + 1
    zombie.close()

    zombie = client.producer(brokers.servers, topic)
    zombie.init()
    zombie.begin()
    zombie.send(topic, "open")
    heir = client.producer(brokers.servers, topic)
    heir.init()
    heir.begin()
    send_and_commit(heir, topic, "heir")

    with pytest.raises(Refused) as refused:
        send_and_commit(zombie, topic, "late")
    assert refused.value.is_fenced, refused.value.name

    heir.begin()
    send_and_commit(heir, topic, "goes-on")
    brokers.wait_until_ended(topic)
    assert values(client, brokers, topic) == ["heir", "goes-on"]
    assert values(client, brokers, topic, UNCOMMITTED) == ["open", "heir", "goes-on"]
    for producer in (zombie, heir):
        producer.close()


def send_and_commit(producer: TransactionalProducer, topic: str, value: str) -> None:
    producer.send(topic, value)
    producer.commit()


@pytest.mark.scenario("D4-O8", "N44")
def test_offsets_count_with_the_transaction_or_not_at_all(
    brokers: TransactionalCluster, client: TransactionalClient
) -> None:
    """Read, transform, write; an aborted round is read again by the next member."""
    source, target = brokers.new_topic(), brokers.new_topic()
    brokers.fill(source, [str(number) for number in range(6)])
    with closing(client.producer(brokers.servers, target)) as producer:
        producer.init()
        for commits, committed in ((True, 2), (False, 2), (True, 4)):
            with closing(client.member(brokers.servers, source, target)) as member:
                taken = member.take(2)
                producer.begin()
                for record in taken:
                    producer.send(target, f"x{record.value}")
                producer.send_offsets(source, {0: taken[-1].offset + 1}, member)
                producer.commit() if commits else producer.abort()
                brokers.wait_until_ended(target)
            assert brokers.committed(target, source) == committed

    assert values(client, brokers, target) == ["x0", "x1", "x2", "x3"]
    assert values(client, brokers, target, UNCOMMITTED) == ["x0", "x1", "x2", "x3", "x2", "x3"]


@pytest.mark.scenario("X-27")
def test_a_transaction_left_open_is_aborted_after_its_timeout(
    brokers: TransactionalCluster, client: TransactionalClient
) -> None:
    """Its epoch is raised, so that its producer is refused when it comes back."""
    topic = brokers.new_topic()
    producer = client.producer(brokers.servers, topic, timeout_ms=1_000)
    producer.init()
    before = brokers.describe(topic)
    producer.begin()
    producer.send(topic, "left")
    wait_until(lambda: brokers.describe(topic).state == "CompleteAbort", "the end of its time")

    assert brokers.describe(topic).producer_epoch > before.producer_epoch
    assert brokers.fences(topic) == Fences(last_stable_offset=2, high_watermark=2)
    with pytest.raises(Refused):
        producer.commit()
    assert values(client, brokers, topic) == []
    assert values(client, brokers, topic, UNCOMMITTED) == ["left"]
    producer.close()


@pytest.mark.scenario("D4-T10")
def test_followers_show_the_same_to_readers_in_their_rack(
    brokers: TransactionalCluster, client: TransactionalClient
) -> None:
    """Committed records only, up to the last stable offset that the follower knows."""
    topic = brokers.new_topic()
    opened, ended = (client.producer(brokers.servers, f"{topic}-{name}") for name in "ab")
    for producer in (ended, opened):
        producer.init()
        producer.begin()
    ended.send(topic, "undone")
    ended.abort()
    brokers.wait_until_ended(f"{topic}-b")
    ended.begin()
    ended.send(topic, "kept")
    opened.send(topic, "open")
    ended.commit()
    brokers.wait_until_ended(f"{topic}-b")

    for rack in RACKS.values():

        def seen(isolation: str, rack: str = rack) -> list[str]:
            found = client.read(brokers.servers, topic, isolation=isolation, rack=rack)
            return [each.value for each in found]

        wait_until(lambda: seen(COMMITTED) == ["kept"], f"the committed record in {rack}")
        assert seen(UNCOMMITTED) == ["undone", "kept", "open"]
    opened.abort()
    for producer in (ended, opened):
        producer.close()


@pytest.mark.scenario("D4-T2")
def test_a_topic_that_is_deleted_does_not_hold_up_its_transaction(
    brokers: TransactionalCluster, client: TransactionalClient
) -> None:
    """It needs no marker any more; the other partitions get theirs."""
    kept, deleted = brokers.new_topic(), brokers.new_topic()
    with closing(client.producer(brokers.servers, kept)) as producer:
        producer.init()
        producer.begin()
        for topic in (kept, deleted):
            producer.send(topic, "both")
        admin = AdminClient({"bootstrap.servers": brokers.servers})
        admin.delete_topics([deleted])[deleted].result(PATIENCE_S)

        producer.commit()
        brokers.wait_until_ended(kept)

        assert values(client, brokers, kept) == ["both"]
        producer.begin()
        send_and_commit(producer, kept, "next")
        brokers.wait_until_ended(kept)
    assert values(client, brokers, kept) == ["both", "next"]
