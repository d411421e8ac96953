"""Several broker processes are one cluster: its leader is killed, and nobody loses anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.process.cluster import BOTH_ROLES, PartitionView, ProcessCluster
from tests.process.target import IS_KAFKA
from tests.process.waiting import wait_until
from tests.process.wire import batch_of, batches_on_disk
from tests.process.workload import PARTITIONS, TOPIC, Writer, judge_records, stored_records

pytestmark = pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness")


def leader_after(cluster: ProcessCluster, dead: int, partition: int) -> PartitionView:
    """Who leads once the survivors have heard of the death."""
    witness = next(each for each in cluster.broker_ids if each != dead)

    def moved() -> PartitionView | None:
        standing = cluster.partition_view(TOPIC, partition, via=witness)
        if standing is None or standing.leader in (dead, -1):
            return None
        return standing if dead not in standing.isr else None

    return wait_until(moved, f"another leader of partition {partition}")


@pytest.mark.scenario("D1-T1")
def test_an_idempotent_producer_survives_the_kill_of_a_leader(tmp_path: Path) -> None:
    """Written on: nothing acknowledged is lost, nothing is stored twice, order is kept; the next
    leader is an in-sync one with the next leader epoch, and the dead one comes back in sync."""
    with ProcessCluster(directory=tmp_path) as cluster:
        cluster.create_topic(TOPIC, partitions=PARTITIONS, min_insync_replicas="2")
        before = cluster.partition_view(TOPIC, 0, via=1)
        assert before is not None
        writer = Writer(cluster.bootstrap_servers, "once", idempotent=True, value_bytes=100)
        writer.start()
        wait_until(lambda: writer.acknowledged > 500, "the first records")

        cluster.kill(before.leader)

        after = leader_after(cluster, before.leader, 0)
        assert after.leader in before.isr
        assert after.leader_epoch == before.leader_epoch + 1
        assert before.leader not in after.isr
        at_the_move = writer.acknowledged
        wait_until(lambda: writer.acknowledged > at_the_move + 500, "records after the move")

        cluster.rejoin(before.leader)
        told = writer.finish()
        for partition in range(PARTITIONS):
            cluster.wait_until_in_sync(TOPIC, partition)
        judge_records(stored_records(_leaders(cluster)), [told])
        for partition in range(PARTITIONS):
            copies = {
                broker_id: batches_on_disk(
                    cluster.nodes[broker_id].data_path, TOPIC, partition=partition
                )
                for broker_id in cluster.broker_ids
            }
            assert copies[1] == copies[2] == copies[3]


@pytest.mark.scenario("D1-T1", "D3-BP1-G3")
def test_a_cluster_serves_on_through_the_kill_of_each_node_in_turn(tmp_path: Path) -> None:
    """The active controller is among them, whoever it is."""
    with ProcessCluster(directory=tmp_path) as cluster:
        cluster.create_topic(TOPIC, partitions=PARTITIONS, min_insync_replicas="2")
        writer = Writer(cluster.bootstrap_servers, "once", idempotent=True, value_bytes=100)
        writer.start()
        for node_id in cluster.broker_ids:
            sooner = writer.acknowledged
            wait_until(lambda: writer.acknowledged > sooner + 200, "records")  # noqa: B023
            cluster.kill(node_id)
            for partition in range(PARTITIONS):
                leader_after(cluster, node_id, partition)
            cluster.rejoin(node_id)
            for partition in range(PARTITIONS):
                cluster.wait_until_in_sync(TOPIC, partition)
        told = writer.finish()
        judge_records(stored_records(_leaders(cluster)), [told])


@pytest.mark.parametrize(
    "roles",
    [
        pytest.param(("controller", "broker", "broker"), id="one-controller-two-brokers"),
        pytest.param((BOTH_ROLES, BOTH_ROLES, "controller"), id="a-tiebreaker"),
        pytest.param((BOTH_ROLES, BOTH_ROLES, BOTH_ROLES, "broker"), id="one-more-broker"),
    ],
)
def test_nodes_with_one_role_do_what_it_says(tmp_path: Path, roles: tuple[str, ...]) -> None:
    """Brokers hold partitions and are told to clients; controllers that are no brokers are not."""
    with ProcessCluster(directory=tmp_path, roles=roles) as cluster:
        cluster.create_topic(TOPIC, partitions=2)
        brokers = list(cluster.broker_ids)
        assert all("broker" in roles[broker_id - 1] for broker_id in brokers)
        for partition in range(2):
            standing = cluster.partition_view(TOPIC, partition, via=brokers[-1])
            assert standing is not None and sorted(standing.replicas) == brokers
            with cluster.wire(standing.leader) as wire:
                assert wire.produce(TOPIC, batch_of(b"hello"), partition=partition).error_code == 0
                [record] = wire.read_all(TOPIC, partition=partition)
                assert record.value == b"hello"
        for node_id in set(cluster.nodes) - set(brokers):
            assert not (cluster.nodes[node_id].data_path / f"{TOPIC}-0").exists()


def _leaders(cluster: ProcessCluster) -> dict[int, str]:
    """The address of each partition's leader."""
    leaders = {}
    for partition in range(PARTITIONS):
        standing = cluster.partition_view(TOPIC, partition, via=cluster.broker_ids[0])
        assert standing is not None
        leaders[partition] = cluster.nodes[standing.leader].address
    return leaders
