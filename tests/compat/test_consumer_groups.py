"""KIP-848 groups with unmodified clients: `group.protocol=consumer`."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient

from tests.compat.clients import DELIVERY_S
from tests.process.target import Target, running_target
from tests.process.wire import WireClient, batch_of

PARTITIONS = 4
RECORDS = 10
EVERYTHING = sorted(b"%d/%d" % (p, n) for p in range(PARTITIONS) for n in range(RECORDS))
SETTINGS = {
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.session.timeout.ms": 3_000,
}
VICTIM = """
import sys
import confluent_kafka
address, group, topic = sys.argv[1:]
consumer = confluent_kafka.Consumer({
    "bootstrap.servers": address, "group.id": group, "group.protocol": "consumer",
})
consumer.subscribe([topic])
while not consumer.assignment():
    consumer.poll(0.1)
print("assigned", flush=True)
while True:
    consumer.poll(0.1)
"""


@pytest.fixture(scope="module", name="quick")
def a_broker_that_wants_heartbeats_often() -> Iterator[Target]:
    with running_target(SETTINGS) as target:
        yield target


@pytest.fixture(name="topic")
def a_filled_topic(quick: Target, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^a-zA-Z0-9-]", "-", request.node.name)
    with WireClient(quick.address) as wire:
        wire.create_topic(name, partitions=PARTITIONS)
        for partition in range(PARTITIONS):
            values = [b"%d/%d" % (partition, n) for n in range(RECORDS)]
            wire.produce(name, batch_of(*values), partition=partition)
    return name


def member(
    quick: Target, group: str, subscription: str, **settings: str
) -> confluent_kafka.Consumer:
    """Of the new protocol, unless settings (with underscores for dots) say otherwise."""
    given = {name.replace("_", "."): value for name, value in settings.items()}
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": quick.address,
            "group.id": group,
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **given,
        }
    )
    consumer.subscribe([subscription])
    return consumer


def read(consumer: confluent_kafka.Consumer, count: int) -> list[bytes]:
    values: list[bytes] = []
    while len(values) < count:
        record = consumer.poll(DELIVERY_S)
        assert record is not None, f"only {len(values)} records came"
        assert record.error() is None, record.error()
        values.append(record.value() or b"")
    return values


def shares(*consumers: confluent_kafka.Consumer, wanted: set[int]) -> list[set[int]]:
    """Poll until together they have all partitions, each some."""
    owned: list[set[int]] = []
    for _ in range(int(DELIVERY_S * 10)):
        for consumer in consumers:
            consumer.poll(0.05)
        owned = [{each.partition for each in consumer.assignment()} for consumer in consumers]
        if all(owned) and set().union(*owned) == wanted:
            break
    return owned


def test_a_group_goes_on_where_it_has_committed(quick: Target, topic: str) -> None:
    values = []
    for count in (15, len(EVERYTHING) - 15):
        consumer = member(quick, topic, topic)
        values += read(consumer, count)
        consumer.commit(asynchronous=False)
        consumer.close()
    assert sorted(values) == EVERYTHING


def test_a_second_member_gets_its_share_and_gives_it_back_when_it_leaves(
    quick: Target, topic: str
) -> None:
    everything = set(range(PARTITIONS))
    first = member(quick, topic, topic)
    assert shares(first, wanted=everything) == [everything]
    second = member(quick, topic, topic)
    owned = shares(first, second, wanted=everything)
    assert sorted(map(len, owned)) == [2, 2] and not owned[0] & owned[1]
    admin = AdminClient({"bootstrap.servers": quick.address})
    listed = admin.list_consumer_groups(types={confluent_kafka.ConsumerGroupType.CONSUMER})
    assert topic in [group.group_id for group in listed.result().valid]
    second.close()
    assert shares(first, wanted=everything) == [everything]
    first.close()


@pytest.mark.scenario("N35")
def test_the_partitions_of_a_killed_member_come_back_after_its_session(
    quick: Target, topic: str
) -> None:
    everything = set(range(PARTITIONS))
    consumer = member(quick, topic, topic)
    command = [sys.executable, "-c", VICTIM, quick.address, topic, topic]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
        try:
            assert shares(consumer, wanted=everything)
            for _ in range(int(DELIVERY_S * 10)):
                consumer.poll(0.1)
                if len(consumer.assignment()) < PARTITIONS:
                    break
            assert victim.stdout is not None
            assert victim.stdout.readline() == "assigned\n"
        finally:
            victim.kill()
    assert shares(consumer, wanted=everything) == [everything]
    consumer.close()


def test_a_subscription_by_regular_expression(quick: Target, topic: str) -> None:
    consumer = member(quick, topic, f"^{topic[:-3]}.*")
    assert sorted(read(consumer, len(EVERYTHING))) == EVERYTHING
    consumer.close()


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_migrates_and_comes_back(quick: Target, topic: str, strategy: str) -> None:
    """A classic member and one of the new kind share the topic; alone again it has everything."""
    old = member(
        quick,
        topic,
        topic,
        group_protocol="classic",
        partition_assignment_strategy=strategy,
        heartbeat_interval_ms="200",
        session_timeout_ms="6000",
    )
    poll_until([old], lambda: len(old.assignment()) == PARTITIONS)
    new = member(quick, topic, topic)
    half = PARTITIONS // 2
    both = [old, new]
    poll_until(both, lambda: [len(each.assignment()) for each in both] == [half, half])
    shared = {part.partition for each in both for part in each.assignment()}
    assert shared == set(range(PARTITIONS))
    new.close()
    poll_until([old], lambda: len(old.assignment()) == PARTITIONS)
    old.close()


def poll_until(consumers: list[confluent_kafka.Consumer], condition: Callable[[], bool]) -> None:
    """Members live by being polled; what they read is nobody's concern here."""
    for _ in range(int(DELIVERY_S * 20)):
        for consumer in consumers:
            consumer.poll(0.05)
        if condition():
            return
    raise AssertionError([consumer.assignment() for consumer in consumers])
