"""Partitions move between six brokers under load: from one half to the other, back, off the dead.

Three copies, a minimum of two, idempotent producers with acks=all. Whatever is killed meanwhile,
nothing that was acknowledged is lost, and whoever is no replica any more keeps no file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.process.campaign import Campaign, campaign
from tests.process.client_verbs import CommandLine
from tests.process.cluster import BOTH_ROLES, ProcessCluster
from tests.process.load import PARTITIONS
from tests.process.target import IS_KAFKA
from tests.process.waiting import wait_until

pytestmark = pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness")

ROLES = (*(BOTH_ROLES,) * 3, *("broker",) * 3)
FIRST, SECOND = (1, 2, 3), (4, 5, 6)
HUNDRED = pytest.param(100, 2_000, id="100-partitions", marks=pytest.mark.long)
FEW = pytest.param(PARTITIONS, 300, id="3-partitions")


class Moves:
    """What an administrator does to the topic that is written."""

    def __init__(self, running: Campaign) -> None:
        self.running = running
        self.topic = running.loads[0].topic
        self.tidelog = CommandLine(running.cluster.bootstrap_servers)

    def to(self, brokers: Sequence[int], *options: str) -> None:
        named = ",".join(str(each) for each in brokers)
        self.tidelog.ok("topic", "reassign", self.topic, "--brokers", named, *options)

    def assert_on(self, brokers: Sequence[int]) -> None:
        """All replicas are there, in sync, and nowhere else is a file of them."""
        cluster = self.running.cluster
        for index in self.running.loads[0].calls:

            def has_arrived(index: int = index) -> bool:
                told = self.running.standing(self.topic, index)
                return sorted(told.replicas) == sorted(told.isr) and set(told.isr) <= set(brokers)

            wait_until(has_arrived, f"{self.topic}-{index} on {brokers}")
        left = [
            path
            for each in cluster.broker_ids
            if each not in brokers
            for path in cluster.nodes[each].data_path.glob(f"{self.topic}-*")
            if not path.name.endswith("-delete")
        ]

        assert left == []

    def ongoing(self) -> list[dict[str, object]]:
        return self.tidelog.ok("topic", "reassign", "--list", "--json").lines


@pytest.mark.scenario("X-40", "D1-T4")
@pytest.mark.parametrize(("partitions", "records"), [FEW, HUNDRED])
def test_partitions_move_under_load_while_brokers_are_killed(
    tmp_path: Path, request: pytest.FixtureRequest, partitions: int, records: int
) -> None:
    """To 1, 2 and 3; to 4, 5 and 6 while an old and a new replica are killed; towards 1, 2 and 3
    again, where one is dead, so that it must be cancelled."""
    with campaign(
        tmp_path, ("librdkafka",), request, roles=ROLES, partitions=partitions
    ) as running:
        moves = Moves(running)
        running.write(records)
        moves.to(FIRST)
        moves.assert_on(FIRST)

        for victim in (2, 5):
            running.write(records)
            moves.to(SECOND if victim == 2 else FIRST, "--no-wait")
            running.cluster.kill(victim)
            running.write_through(records)
            running.cluster.rejoin(victim)
        moves.to(SECOND)
        moves.assert_on(SECOND)

        running.write(records)
        running.cluster.kill(3)
        moves.to(FIRST, "--no-wait")
        assert len(moves.ongoing()) == partitions, "a new replica is dead, so none can end"
        moves.tidelog.ok("topic", "reassign", moves.topic, "--cancel")
        assert moves.ongoing() == []
        running.write_through(records)
        running.cluster.rejoin(3)
        moves.assert_on(SECOND)


@pytest.mark.scenario("X-40")
@pytest.mark.parametrize(("partitions", "records"), [FEW, HUNDRED])
def test_a_dead_broker_is_replaced_under_load(
    tmp_path: Path, request: pytest.FixtureRequest, partitions: int, records: int
) -> None:
    """Its replicas go to the others, and it is forgotten; when it comes back after all, it is a
    new broker without anything."""
    with campaign(
        tmp_path, ("librdkafka",), request, roles=ROLES, partitions=partitions
    ) as running:
        moves = Moves(running)
        moves.to((2, 3, 4, 6))
        running.write(records)
        running.cluster.kill(6)

        def is_noticed() -> bool:
            return all(
                6 not in running.standing(moves.topic, index).isr
                for index in running.loads[0].calls
            )

        wait_until(is_noticed, "the death of 6")
        said = moves.tidelog.ok("broker", "remove", "6")

        assert said.output.splitlines()[-1] == "broker 6 is unregistered"
        running.write_through(records)
        moves.assert_on((1, 2, 3, 4, 5, 6))
        running.cluster.rejoin(6)
        moves.assert_on((1, 2, 3, 4, 5))


def test_a_broker_that_cannot_be_spared_is_not_removed(tmp_path: Path) -> None:
    with ProcessCluster(directory=tmp_path) as cluster:
        tidelog = CommandLine(cluster.bootstrap_servers)
        cluster.create_topic("orders", partitions=1)

        refused = tidelog("broker", "remove", "3")

        assert refused.code == 1
        assert "orders-0 has 3 replicas, and only 2 brokers would be left" in refused.errors
        assert tidelog("broker", "remove", "9").errors == (
            "tidelog broker remove: broker 9 is not registered; there are 1,2,3\n"
        )
