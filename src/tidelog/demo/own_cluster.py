"""The demo on four brokers of our own in two racks: which are killed, and how writes continue.

Each partition has a copy on every broker, two in each rack, and a write needs two in-sync copies:
so either rack may die, and writes continue.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tidelog.cluster.cluster import Cluster
from tidelog.demo.accounts import PublishedOrders
from tidelog.demo.errors import WITHIN_S, Say, wait_until
from tidelog.demo.pipeline_file import VALID, Targets
from tidelog.demo.published import published_tables
from tidelog.demo.stream import OrderStream
from tidelog.demo.topics import create_topics

TOPIC = "orders"
PARTITIONS = 3
BROKERS = 4
RACKS = ("a", "b")
COPIES_MIN = 2


class OwnCluster:
    """The demo on Tidelog; the pipeline writes Parquet tables beside its file."""

    sink = "a Parquet table"

    def __init__(self, directory: Path, say: Say) -> None:
        self._directory = directory
        self._say = say
        self._cluster = Cluster(
            brokers=BROKERS, racks=RACKS, data=directory / "cluster", faults=False
        )
        self.targets = Targets(orders=TOPIC)

    @property
    def servers(self) -> str:
        return self._cluster.bootstrap_servers

    def start(self) -> None:
        self._cluster.start(timeout_s=WITHIN_S)
        try:
            self._create_topic()
        except BaseException:
            self._cluster.close()
            raise

    def close(self) -> None:
        self._cluster.close()

    def inject_failures(self, stream: OrderStream, pause: Callable[[], None]) -> None:
        """Kill a leader and restart it, then a whole rack."""
        leader = self._leader()
        self._kill_and_restart(
            (leader,),
            f"broker {leader}, which leads {TOPIC}-0",
            stream,
            partitions={0},
            pause=pause,
        )
        pause()
        leader = self._leader()
        rack, nodes = next(each for each in self._cluster.racks.items() if leader in each[1])
        names = " and ".join(map(str, nodes))
        self._kill_and_restart(
            nodes,
            f"rack {rack}: brokers {names}, half of the cluster",
            stream,
            partitions=set(range(PARTITIONS)),
            pause=pause,
        )

    def audit_arguments(self) -> list[str]:
        """Through the brokers, and on the disks of all replicas."""
        table = self._directory / VALID
        return ["--segments", str(self._cluster.data), "--published-table", str(table)]

    def published(self) -> PublishedOrders:
        return published_tables(self._directory)

    # Inside.

    def _create_topic(self) -> None:
        racks = ", ".join(
            f"rack {name}: brokers {' and '.join(map(str, nodes))}"
            for name, nodes in self._cluster.racks.items()
        )
        self._say(f"four brokers are ready ({racks}), and a fifth node that only votes")
        configs = {"min.insync.replicas": str(COPIES_MIN)}
        create_topics(self.servers, {TOPIC: PARTITIONS}, replicas=BROKERS, configs=configs)
        self._wait_until_in_sync()
        self._say(
            f"topic {TOPIC}: {PARTITIONS} partitions, each on all four brokers; "
            f"a write needs at least {COPIES_MIN} of them"
        )

    def _kill_and_restart(
        self,
        nodes: tuple[int, ...],
        description: str,
        stream: OrderStream,
        *,
        partitions: set[int],
        pause: Callable[[], None],
    ) -> None:
        """kill -9, wait until writes continue, and start the brokers again."""
        killed_s = time.monotonic()
        self._cluster.kill(*nodes)
        self._say(f"[bold]kill -9[/bold] of {description}")
        wait_until(
            lambda: partitions <= stream.pauses_since(killed_s).resumed, "the next acknowledgement"
        )
        pauses = stream.pauses_since(killed_s)
        paused_s = max(pauses.paused_s[each] for each in partitions)
        leader = self._cluster.wait_leader(TOPIC, 0, timeout_s=WITHIN_S)
        errors = f"{stream.failed:,} records got an error" if stream.failed else "no errors"
        self._say(
            f"broker {leader} leads {TOPIC}-0; writes paused for {paused_s:.2f} s and continue, "
            f"{errors}"
        )
        pause()
        self._cluster.restart(*nodes)
        self._wait_until_in_sync()
        back = " and ".join(map(str, nodes))
        self._say(f"started again: {back} caught up, all four copies are in sync")

    def _leader(self) -> int:
        leader = self._cluster.wait_leader(TOPIC, 0, timeout_s=WITHIN_S)
        assert leader is not None
        return leader

    def _wait_until_in_sync(self) -> None:
        for partition in range(PARTITIONS):
            self._cluster.wait_isr(TOPIC, partition, timeout_s=WITHIN_S)
