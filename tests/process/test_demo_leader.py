"""The demo's story with real brokers, and with brokers that forget what they promised."""

from __future__ import annotations

from pathlib import Path

from tidelog.cluster.cluster import Cluster
from tidelog.lab.failover_demo import (
    AFTERWARDS,
    ONE_COPY,
    PARTITION,
    REPLICATED,
    WAITING,
    Accounts,
    run,
)


class ForgetfulCluster(Cluster):
    """While one broker is away, all of them lose the first half of what they had written."""

    def restart(self, *targets: object) -> object:
        for node_id in self.nodes:
            if node_id not in targets:
                self.kill(node_id)
        for node in self.nodes.values():
            for segment in (Path(node.data_path) / str(PARTITION)).glob("*.log"):
                data = segment.read_bytes()
                segment.write_bytes(data[: len(data) // 3])
        return super().restart(*self.nodes)


def told(cluster: Cluster) -> Accounts:
    said: list[str] = []
    with cluster:
        return run(cluster, said.append)


def test_a_leader_dies_with_what_only_it_had() -> None:
    """Five orders acknowledged with acks=1 are lost; of acks=all none is, and the dead leader's
    log gives way to its successor's."""
    accounts = told(Cluster(brokers=3))

    assert accounts.surprises == []
    assert [each.payload for each in accounts.lost] == [
        f"hasty order {number + 1}" for number in range(ONE_COPY)
    ]
    assert len(accounts.orders) == REPLICATED + ONE_COPY + WAITING + AFTERWARDS
    fences = accounts.at_the_kill
    assert fences.high_watermark == REPLICATED
    assert fences.log_end_offsets.pop(accounts.dead) == REPLICATED + ONE_COPY + WAITING
    assert set(fences.log_end_offsets.values()) == {REPLICATED}
    assert [each.leader_epoch for each in accounts.tail_before] == [0] * (ONE_COPY + WAITING)
    assert {each.leader_epoch for each in accounts.tail_after} == {1}
    assert [each.payload for each in accounts.tail_after] == [
        *(f"waiting order {number + 1}" for number in range(WAITING)),
        *(f"later order {number + 1}" for number in range(AFTERWARDS)),
    ]


def test_brokers_that_forget_are_found_out() -> None:
    accounts = told(ForgetfulCluster(brokers=3))

    careful = [each for each in accounts.lost if each.acks == "all"]
    assert careful
    assert len(accounts.surprises) >= len(careful)
