"""Four brokers of our own over two racks, the blows they get, and how the order stream takes them.

Each partition has a copy on every broker, two in each rack, and a write needs two in-sync copies:
so either rack may die, and writes go on.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tidelog.cluster.cluster import Cluster
from tidelog.demo.accounts import PublishedOrders
from tidelog.demo.errors import WITHIN_S, Say, wait_until
from tidelog.demo.pipeline_file import VALID, Targets
from tidelog.demo.published import published_tables
from tidelog.demo.stream import OrderStream
from tidelog.demo.topics import make_topics

TOPIC = "orders"
PARTITIONS = 3
BROKERS = 4
RACKS = ("a", "b")
COPIES_MIN = 2


class OwnCluster:
    """The stage on Tidelog; the pipeline writes Parquet tables beside its file."""

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

    def __enter__(self) -> Self:
        self._cluster.start(timeout_s=WITHIN_S)
        try:
            self._introduce()
        except BaseException:
            self._cluster.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._cluster.close()

    def blows(self, stream: OrderStream, calm: Callable[[], None]) -> None:
        """A leader dies and returns, then a whole rack."""
        leader = self._leader()
        self._strike(
            (leader,), f"broker {leader}, which leads {TOPIC}-0", stream, partitions={0}, calm=calm
        )
        calm()
        leader = self._leader()
        rack, nodes = next(each for each in self._cluster.racks.items() if leader in each[1])
        names = " and ".join(map(str, nodes))
        self._strike(
            nodes,
            f"rack {rack}: brokers {names}, half of the cluster",
            stream,
            partitions=set(range(PARTITIONS)),
            calm=calm,
        )

    def audit_arguments(self) -> list[str]:
        """Through the brokers, and on the disks of all replicas."""
        table = self._directory / VALID
        return ["--segments", str(self._cluster.data), "--published-table", str(table)]

    def published(self) -> PublishedOrders:
        return published_tables(self._directory)

    # Inside.

    def _introduce(self) -> None:
        racks = ", ".join(
            f"rack {name}: brokers {' and '.join(map(str, nodes))}"
            for name, nodes in self._cluster.racks.items()
        )
        self._say(f"four brokers are ready ({racks}), and a fifth node that only votes")
        configs = {"min.insync.replicas": str(COPIES_MIN)}
        make_topics(self.servers, {TOPIC: PARTITIONS}, replicas=BROKERS, configs=configs)
        self._wait_until_in_sync()
        self._say(
            f"topic {TOPIC}: {PARTITIONS} partitions, each on all four brokers; "
            f"a write needs at least {COPIES_MIN} of them"
        )

    def _strike(
        self,
        nodes: tuple[int, ...],
        words: str,
        stream: OrderStream,
        *,
        partitions: set[int],
        calm: Callable[[], None],
    ) -> None:
        """kill -9, see writes go on, and let the dead return."""
        blow_s = time.monotonic()
        self._cluster.kill(*nodes)
        self._say(f"[bold]kill -9[/bold] of {words}")
        wait_until(lambda: partitions <= stream.since(blow_s).went_on, "the next acknowledgement")
        seen = stream.since(blow_s)
        paused_s = max(seen.paused_s[each] for each in partitions)
        leader = self._cluster.wait_leader(TOPIC, 0, timeout_s=WITHIN_S)
        errors = f"{stream.failed:,} records got an error" if stream.failed else "no error was told"
        self._say(
            f"broker {leader} leads {TOPIC}-0; writes paused for {paused_s:.2f} s and go on, "
            f"{errors}"
        )
        calm()
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
