"""Fifty members of one group over two hundred partitions: they join, some die, some leave."""

from __future__ import annotations

import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator

import confluent_kafka
import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from tests.compat.clients import DELIVERY_S
from tests.process.target import Target, running_target
from tests.process.waiting import PATIENCE_S, TooLate

PARTITIONS, HERE, VICTIMS, LEAVING = 200, 30, 20, 10
ONCE = Counter(range(PARTITIONS))
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 500,
    "group.consumer.min.heartbeat.interval.ms": 500,
    "group.consumer.session.timeout.ms": 6_000,
    "group.consumer.min.session.timeout.ms": 6_000,
}
MEMBERS = """
import sys
import confluent_kafka
address, topic, protocol, count = sys.argv[1:]
config = {"bootstrap.servers": address, "group.id": topic, "group.protocol": protocol}
if protocol == "classic":
    config["session.timeout.ms"] = 6_000
members = [confluent_kafka.Consumer(config) for _ in range(int(count))]
for member in members:
    member.subscribe([topic])
while True:
    for member in members:
        member.poll(0.005)
"""


@pytest.fixture(scope="module", name="broker")
def a_broker_with_short_sessions() -> Iterator[Target]:
    with running_target(SETTINGS) as target:
        yield target


class Members:
    """Those of this process; they live while they are polled."""

    def __init__(self, address: str, topic: str, protocol: str) -> None:
        config: dict[str, str | int | float | bool] = {
            "bootstrap.servers": address,
            "group.id": topic,
            "group.protocol": protocol,
        }
        if protocol == "classic":
            config["session.timeout.ms"] = 6_000
        self.consumers = [confluent_kafka.Consumer(config) for _ in range(HERE)]
        for consumer in self.consumers:
            consumer.subscribe([topic])

    def owned(self) -> Counter[int]:
        """How many of them have each partition."""
        return Counter(
            each.partition for consumer in self.consumers for each in consumer.assignment()
        )

    def poll_until(self, reached: Callable[[], bool], what: str) -> None:
        deadline_s = time.monotonic() + 2 * PATIENCE_S
        while not reached():
            if time.monotonic() > deadline_s:
                raise TooLate(f"{what}; owned here: {self.owned().total()}")
            for consumer in self.consumers:
                consumer.poll(0.005)


@pytest.mark.long
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_every_partition_is_owned_once_whoever_comes_and_goes(
    broker: Target, protocol: str
) -> None:
    """By what the coordinator says, and by what the members themselves say."""
    topic = f"shared-{protocol}"
    admin = AdminClient({"bootstrap.servers": broker.address})
    admin.create_topics([NewTopic(topic, PARTITIONS, 1)])[topic].result(DELIVERY_S)

    def is_settled(members: int) -> bool:
        """So many members, stable, and each partition is the coordinator's gift to one of them."""
        found = admin.describe_consumer_groups([topic])[topic].result(DELIVERY_S)
        given = [each.assignment.topic_partitions for each in found.members]
        owned = Counter(each.partition for share in given for each in share)
        stable = found.state == confluent_kafka.ConsumerGroupState.STABLE
        return stable and len(given) == members and owned == ONCE and all(given)

    members = Members(broker.address, topic, protocol)
    command = [sys.executable, "-c", MEMBERS, broker.address, topic, protocol, str(VICTIMS)]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as others:
        try:
            members.poll_until(lambda: is_settled(HERE + VICTIMS), "fifty members")
            share = HERE * PARTITIONS // (HERE + VICTIMS)
            members.poll_until(lambda: members.owned().total() == share, "their shares")
            assert set(members.owned().values()) == {1}
        finally:
            others.kill()
    members.poll_until(lambda: members.owned() == ONCE, "the partitions of the killed")
    assert is_settled(HERE)

    for leaver in members.consumers[-LEAVING:]:
        leaver.close()
    del members.consumers[-LEAVING:]
    members.poll_until(lambda: members.owned() == ONCE, "the partitions of those who left")
    assert is_settled(HERE - LEAVING)
    for consumer in members.consumers:
        consumer.close()
