"""Consumers of a group, unmodified, die at every moment around a commit; others go on for them."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import confluent_kafka
import kafka
import pytest

from tests.process.cluster import ProcessCluster
from tests.process.target import IS_KAFKA
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import batch_of
from tests.tidy.reading import ROOT
from tidelog.core.coordinator.key_hash import partition_of
from tidelog.core.model.topic_name import OFFSETS_TOPIC

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("group-deaths"),
]

OFFSETS_PARTITIONS = 3
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 500,
    "offsets.topic.num.partitions": OFFSETS_PARTITIONS,
}
RECORDS = 200
POLL_S = 0.2


@pytest.fixture(scope="module", name="cluster")
def three_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessCluster]:
    with ProcessCluster(directory=tmp_path_factory.mktemp("groups"), settings=SETTINGS) as cluster:
        yield cluster


def fill(cluster: ProcessCluster, topic: str, count: int = RECORDS, partitions: int = 1) -> None:
    """A topic in which the record at offset N is N."""
    cluster.create_topic(topic, partitions=partitions)
    for partition in range(partitions):
        leader = cluster.leader(topic, partition)
        assert leader is not None
        with cluster.wire(leader) as wire:
            values = [b"%d" % number for number in range(count)]
            wire.produce(topic, batch_of(*values), partition=partition)


@contextmanager
def victim(
    cluster: ProcessCluster, client: str, plan: str, topic: str
) -> Iterator[subprocess.Popen[str]]:
    """It has done what its plan says, and goes on sending heartbeats; then it is killed."""
    command = [sys.executable, "-m", "tests.process.group_victim", client, plan]
    command += [cluster.bootstrap_servers, topic, topic]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            yield process
        finally:
            process.kill()


def librdkafka(cluster: ProcessCluster, group: str, **more: object) -> confluent_kafka.Consumer:
    config = {
        "bootstrap.servers": cluster.bootstrap_servers,
        "group.id": group,
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        **{key.replace("_", "."): value for key, value in more.items()},
    }
    return confluent_kafka.Consumer(config)


def offsets_read(consumer: confluent_kafka.Consumer, count: int) -> list[int]:
    found: list[int] = []

    def has_all() -> bool:
        record = consumer.poll(POLL_S)
        if record is not None:
            assert record.error() is None, record.error()
            offset = record.offset()
            assert offset is not None
            found.append(offset)
        return len(found) == count

    wait_until(has_all, f"{count} records")
    return found


def goes_on(cluster: ProcessCluster, topic: str, count: int) -> list[int]:
    """What the next member of the group is given."""
    consumer = librdkafka(cluster, topic)
    consumer.subscribe([topic])
    found = offsets_read(consumer, count)
    consumer.close()
    return found


def committed(cluster: ProcessCluster, group: str, topic: str) -> int:
    consumer = librdkafka(cluster, group)
    wanted = [confluent_kafka.TopicPartition(topic, 0)]
    [found] = consumer.committed(wanted, timeout=PATIENCE_S)
    consumer.close()
    offset: int = found.offset
    return offset


@pytest.mark.scenario("D3-F1", "D4-O8", "D4-O7", "N41")
@pytest.mark.parametrize("client", ["librdkafka", "kafka-python"])
def test_1000_to_1099_are_committed_as_1100(cluster: ProcessCluster, client: str) -> None:
    """The group has committed 1000: it is given 1000 to 1099, below the high watermark, and
    commits 1100, the next offset to read."""
    topic = f"f1-{client}"
    fill(cluster, topic, 1_100)
    administrator = librdkafka(cluster, topic)
    begun = [confluent_kafka.TopicPartition(topic, 0, 1_000)]
    administrator.commit(offsets=begun, asynchronous=False)
    administrator.close()

    if client == "librdkafka":
        consumer = librdkafka(cluster, topic)
        consumer.subscribe([topic])
        found = offsets_read(consumer, 100)
        consumer.commit(asynchronous=False)
        consumer.close()
    else:
        found = with_kafka_python(cluster, topic, 100)

    assert found == list(range(1_000, 1_100))
    assert committed(cluster, topic, topic) == 1_100


def with_kafka_python(cluster: ProcessCluster, topic: str, count: int) -> list[int]:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=cluster.bootstrap_servers.split(","),
        group_id=topic,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        metadata_max_age_ms=1_000,  # it may join before it knows the topic, and then has nothing
    )
    found: list[int] = []

    def has_all() -> bool:
        batches = consumer.poll(timeout_ms=200, max_records=count - len(found))
        found.extend(record.offset for batch in batches.values() for record in batch)
        return len(found) == count

    wait_until(has_all, f"{count} records")
    consumer.commit()
    consumer.close()
    return found


@pytest.mark.scenario("D3-A1a", "D3-A1b", "N35")
def test_automatic_commits_in_the_poll_loop_lose_nothing(cluster: ProcessCluster) -> None:
    """kafka-python commits 100 by itself, is given 100 to 199 and dies: they come again, when its
    session is over."""
    topic = "a1-polled"
    fill(cluster, topic)
    with victim(cluster, "kafka-python", "poll", topic) as process:
        wait_until(lambda: committed(cluster, topic, topic) == 100, "the automatic commit")
        process.kill()
    died_s = time.monotonic()

    assert goes_on(cluster, topic, 100) == list(range(100, 200))
    assert time.monotonic() - died_s > 1, "its session had not ended"


@pytest.mark.scenario("D3-A1c", "N36")
@pytest.mark.parametrize(("plan", "begins_at"), [("unfinished", 101), ("stored", 100)])
def test_librdkafka_commits_what_is_handed_over(
    cluster: ProcessCluster, plan: str, begins_at: int
) -> None:
    """Record 100 is in the hands of the program, which dies before it has finished. By default its
    offset was stored when it was handed over, and nobody ever finishes it;
    `enable.auto.offset.store=false` cures."""
    topic = f"a1-{plan}"
    fill(cluster, topic)
    with victim(cluster, "librdkafka", plan, topic):
        wait_until(lambda: committed(cluster, topic, topic) == begins_at, "the automatic commit")

    assert goes_on(cluster, topic, RECORDS - begins_at) == list(range(begins_at, RECORDS))


@pytest.mark.scenario("D3-A2")
@pytest.mark.parametrize("client", ["librdkafka", "kafka-python"])
def test_what_was_processed_and_not_committed_comes_twice(
    cluster: ProcessCluster, client: str
) -> None:
    """100 is committed, 100 to 150 are processed, the consumer dies: the next one is given 100 to
    199, so 100 to 150 came twice and 151 to 199 once."""
    topic = f"a2-{client}"
    fill(cluster, topic)
    with victim(cluster, client, "manual", topic):
        assert committed(cluster, topic, topic) == 100

    assert goes_on(cluster, topic, 100) == list(range(100, 200))


@pytest.mark.scenario("D4-O5")
def test_positions_are_kept_by_the_group_or_in_a_table_of_ones_own(cluster: ProcessCluster) -> None:
    """The same records, the same place to go on: by a commit, and by what a program wrote down."""
    topic = "o5"
    fill(cluster, topic)
    group = librdkafka(cluster, topic)
    group.subscribe([topic])
    assert offsets_read(group, 120) == list(range(120))
    group.commit(asynchronous=False)
    group.close()
    table = {}
    own = librdkafka(cluster, "unused")
    own.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    table["o5-0"] = offsets_read(own, 120)[-1] + 1
    own.close()

    sought = librdkafka(cluster, "unused")
    sought.assign([confluent_kafka.TopicPartition(topic, 0, table["o5-0"])])
    from_table = offsets_read(sought, 80)
    sought.close()
    assert goes_on(cluster, topic, 80) == from_table == list(range(120, 200))
    assert committed(cluster, "unused", topic) < 0, "nobody but the program knows of its table"


MOVES = [
    pytest.param({"partition.assignment.strategy": "range"}, 4, id="eager"),
    pytest.param({"partition.assignment.strategy": "cooperative-sticky"}, 2, id="cooperative"),
    pytest.param({"group.protocol": "consumer"}, 2, id="kip-848"),
]


@pytest.mark.scenario("D3-D9")
@pytest.mark.parametrize(("config", "taken_away"), MOVES)
def test_incremental_rebalances_move_only_what_must_move(
    cluster: ProcessCluster, config: dict[str, str], taken_away: int, request: pytest.FixtureRequest
) -> None:
    """A second member joins one that has four partitions. Cooperative and KIP-848 groups take two
    from it, and leave it the other two; an eager group takes all four, and gives two back."""
    topic = f"d9-{request.node.callspec.id}"
    fill(cluster, topic, 1, partitions=4)
    taken: list[int] = []
    consumers = [librdkafka(cluster, topic, **config) for _ in range(2)]
    first, second = consumers

    def shares(*wanted: int) -> bool:
        for consumer in consumers:
            consumer.poll(0.05)
        return [len(consumer.assignment()) for consumer in consumers] == list(wanted)

    first.subscribe(
        [topic], on_revoke=lambda _, lost: taken.extend(each.partition for each in lost)
    )
    wait_until(lambda: shares(4, 0), "the first to have everything")
    second.subscribe([topic])
    wait_until(lambda: shares(2, 2), "both to have their share")

    assert len(taken) == taken_away
    kept = {each.partition for each in first.assignment()}
    if taken_away == 2:
        assert not kept & set(taken)
    second.close()
    first.close()


@pytest.mark.scenario("D3-K2", "D4-C4", "D4-O8")
def test_a_commit_survives_its_consumer_the_leader_and_the_coordinator(
    cluster: ProcessCluster,
) -> None:
    """100 is committed; the consumer, and the broker that leads its partition and coordinates its
    group, are killed. Another consumer goes on at 100. The last test: a broker stays dead."""
    topic = "k2"
    assert committed(cluster, topic, topic) < 0  # now the offsets have their topic
    coordinator = cluster.leader(OFFSETS_TOPIC, partition_of(topic, OFFSETS_PARTITIONS))
    assert coordinator is not None
    others = [each for each in cluster.broker_ids if each != coordinator]
    placement = {"partition_index": 0, "broker_ids": [coordinator, *others]}
    wanted = {"name": topic, "num_partitions": -1, "replication_factor": -1}
    cluster.ask_for_topic({**wanted, "assignments": [placement]}, by=coordinator)
    cluster.wait_until_in_sync(topic, 0)
    with cluster.wire(coordinator) as wire:
        wire.produce(topic, batch_of(*(b"%d" % number for number in range(RECORDS))))
    with victim(cluster, "librdkafka", "manual", topic):
        pass

    cluster.kill(coordinator)

    assert goes_on(cluster, topic, 100) == list(range(100, 200))
    assert cluster.leader(topic, 0) in others
