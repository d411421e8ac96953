"""A coordinator dies before, between and after the markers of a transaction that it has decided."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.process.target import IS_KAFKA
from tests.process.transactional_clients import Librdkafka
from tests.process.transactional_cluster import BROKERS, TransactionalCluster, running_brokers
from tests.process.waiting import wait_until

pytestmark = pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka has no fault gates")

CLIENT = Librdkafka()


@pytest.fixture(scope="module", name="running")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TransactionalCluster]:
    with running_brokers(tmp_path_factory.mktemp("markers"), faults=True) as cluster:
        yield cluster


@pytest.fixture
def brokers(running: TransactionalCluster) -> Iterator[TransactionalCluster]:
    """The module's cluster, which is whole again after each test."""
    yield running
    running.start(*(each for each in BROKERS if not running.cluster.is_running(each)))
    running.cluster.heal()


@pytest.mark.scenario("X-28", "D4-T5", "D4-T2")
@pytest.mark.parametrize("written", [0, 1, 2])
@pytest.mark.parametrize("commits", [True, False], ids=["commit", "abort"])
def test_the_next_coordinator_writes_what_is_missing(
    brokers: TransactionalCluster, written: int, commits: bool
) -> None:
    """So many of two partitions have their marker when the coordinator is killed. The decision was
    answered before."""
    topic = brokers.new_topic(partitions=len(BROKERS))
    with closing(CLIENT.producer(brokers.servers, topic)) as producer:
        producer.init()
        coordinator = brokers.coordinator(topic)
        leaders = {brokers.cluster.leader(topic, at): at for at in range(len(BROKERS))}
        assert sorted(leaders, key=str) == list(BROKERS)
        others = [each for each in BROKERS if each != coordinator]
        partitions = [leaders[each] for each in others]
        producer.begin()
        for partition in partitions:
            producer.send(topic, f"in {partition}", partition=partition)
        for other in others[written:]:
            brokers.cluster.hold(coordinator, other, "coordinator")
        producer.commit() if commits else producer.abort()

        def is_over(partition: int) -> bool:
            """A marker may be there twice, from the old coordinator and from the new one."""
            fences = brokers.fences(topic, partition=partition)
            return fences.last_stable_offset == fences.high_watermark > 1

        wanted = [True] * written + [False] * (len(others) - written)
        wait_until(lambda: list(map(is_over, partitions)) == wanted, f"{written} markers")
        brokers.kill(coordinator)

        wait_until(lambda: all(map(is_over, partitions)), "all markers")
        brokers.wait_until_ended(topic)
        assert brokers.describe(topic).state == ("CompleteCommit" if commits else "CompleteAbort")
        found = CLIENT.read(brokers.servers, topic, partitions=len(BROKERS))
        texts = [f"in {partition}" for partition in sorted(partitions)]
        assert [each.value for each in found] == (texts if commits else [])
