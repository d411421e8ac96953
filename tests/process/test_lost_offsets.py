"""The only copy of a group's offsets is on a broker that dies, for a while or for good (D3-S4)."""

from __future__ import annotations

import shutil
from pathlib import Path

import confluent_kafka
import pytest

from tests.process.cluster import BOTH_ROLES, ProcessCluster
from tests.process.target import IS_KAFKA
from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import batch_of
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import OFFSETS_TOPIC

pytestmark = pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness")

TOPIC = "orders"
KEEPER = 4
DONE, ALL = 501, 1_000
ROLES = (BOTH_ROLES, BOTH_ROLES, BOTH_ROLES, "broker")
GROUP, GROUPS = "order-processors", ("order-processors", "order-mailers", "order-auditors")
PARTITION = 30
"""Of 50, for this name: not 0, as the document has it."""
SETTINGS = {"group.initial.rebalance.delay.ms": 0}


def make_topics(cluster: ProcessCluster) -> None:
    """`orders` on the first three brokers, every committed offset on the fourth alone."""
    for name, count, brokers in ((TOPIC, 1, [1, 2, 3]), (OFFSETS_TOPIC, 50, [KEEPER])):
        placements = [{"partition_index": index, "broker_ids": brokers} for index in range(count)]
        wanted = {"name": name, "num_partitions": -1, "replication_factor": -1}
        cluster.ask_for_topic({**wanted, "assignments": placements}, by=1)
    wait_until(lambda: cluster.leader(TOPIC, 0) == 1, "broker 1 to lead")
    wait_until(lambda: cluster.leader(OFFSETS_TOPIC, 49) == KEEPER, "broker 4 to coordinate")
    with cluster.wire(1) as wire:
        wire.produce(TOPIC, batch_of(*(b"%d" % number for number in range(ALL))))


def member(cluster: ProcessCluster, group: str, reset: str) -> confluent_kafka.Consumer:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": reset,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    consumer.subscribe([TOPIC])
    return consumer


def read(consumer: confluent_kafka.Consumer, end: int) -> list[int | None]:
    """Offsets, until this one came."""
    found: list[int | None] = []

    def is_there() -> bool:
        record = consumer.poll(0.2)
        if record is not None and record.error() is None:
            found.append(record.offset())
        return end - 1 in found

    wait_until(is_there, f"offset {end - 1}")
    return found


@pytest.mark.long
@pytest.mark.scenario("D3-S4a", "D3-S4b", "N33")
def test_lost_offsets_make_consumers_wait_and_then_reset(tmp_path: Path) -> None:
    """While broker 4 is dead nobody coordinates, consumers wait and skip nothing. When it returns
    without its disk, `latest` skips 501 to 999, `earliest` reads all again, `error` raises."""
    with ProcessCluster(directory=tmp_path, roles=ROLES, settings=SETTINGS) as cluster:
        make_topics(cluster)
        for group in GROUPS:
            first = member(cluster, group, "earliest")
            assert read(first, DONE) == list(range(DONE))
            wanted = [confluent_kafka.TopicPartition(TOPIC, 0, DONE)]
            first.commit(offsets=wanted, asynchronous=False)
            first.close()
        stored = cluster.nodes[KEEPER].data_path / f"{OFFSETS_TOPIC}-{PARTITION}"
        assert any(path.stat().st_size for path in stored.glob("*.log")), "it is in partition 30"

        cluster.kill(KEEPER)
        wait_until(lambda: cluster.known_brokers(1) == [1, 2, 3], "its death to be known")
        waiting = member(cluster, GROUP, "latest")
        with cluster.wire(1) as wire:
            answer = wire.ask("FindCoordinator", 4, key_type=0, coordinator_keys=[GROUP])
        assert answer.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert waiting.poll(3.0) is None
        assert waiting.assignment() == []

        for directory in cluster.nodes[KEEPER].data_path.glob(f"{OFFSETS_TOPIC}-*"):
            shutil.rmtree(directory)
        cluster.launch_node(KEEPER)
        wait_until(lambda: waiting.poll(0.2) is None and waiting.assignment(), "it to join")
        [found] = waiting.committed(wanted, timeout=PATIENCE_S)
        assert found.offset < 0, "the group has no offset"
        place = confluent_kafka.TopicPartition(TOPIC, 0)
        wait_until(
            lambda: (
                waiting.poll(0.2) is None
                and waiting.get_watermark_offsets(place, cached=True) == (0, ALL)
            ),
            "its first fetch at the end",
        )
        produce_one(cluster)
        assert read(waiting, ALL + 1) == [ALL], "501 to 999 are skipped"
        waiting.close()

        again = member(cluster, GROUPS[1], "earliest")
        assert read(again, ALL + 1) == list(range(ALL + 1))
        again.close()
        assert_it_raises(member(cluster, GROUPS[2], "error"))


def assert_it_raises(consumer: confluent_kafka.Consumer) -> None:
    errors: list[str] = []

    def has_failed() -> bool:
        record = consumer.poll(0.2)
        if record is not None:
            error = record.error()
            assert error is not None, "it must not read anything"
            errors.append(error.name())
        return "_AUTO_OFFSET_RESET" in errors

    wait_until(has_failed, "an error out of poll")
    consumer.close()


def produce_one(cluster: ProcessCluster) -> None:
    """Behind what is there, once the consumer stands at the end."""
    with cluster.wire(1) as wire:
        wire.produce(TOPIC, batch_of(b"%d" % ALL))
