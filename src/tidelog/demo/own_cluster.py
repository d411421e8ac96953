"""The demo on four brokers of our own in two racks: which are killed, and how writes continue.

Each partition has a copy on every broker, two in each rack, and a write needs two in-sync copies:
so either rack may die, and writes continue. The same holds for the topics of the coordinators:
transactions continue as well.
"""

from __future__ import annotations

import time
from pathlib import Path

from tidelog.client.admin.transactions import (
    describe_transaction,
    find_transaction_coordinators,
)
from tidelog.client.shells.blocking_clients import Admin
from tidelog.cluster.cluster import Cluster
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tidelog.demo.accounts import PublishedOrders
from tidelog.demo.errors import WITHIN_S, DemoFailed, Say, wait_until
from tidelog.demo.flow import Flow
from tidelog.demo.pipeline_file import REVENUE, VALID, Targets
from tidelog.demo.published import published_tables
from tidelog.demo.topics import create_topics

TOPIC = "orders"
PARTITIONS = 3
BROKERS = 4
RACKS = ("a", "b")
COPIES_MIN = 2
SETTINGS = {
    "offsets.topic.num.partitions": PARTITIONS,
    "offsets.topic.replication.factor": BROKERS,
    "transaction.state.log.num.partitions": PARTITIONS,
    "transaction.state.log.replication.factor": BROKERS,
    "transaction.state.log.min.isr": COPIES_MIN,
}
"""By default three copies, of which one rack may have two."""
ONGOING = "Ongoing"


class OwnCluster:
    """The demo on Tidelog: the pipeline writes revenue into a topic, in transactions, and the
    orders and the dead letters into Parquet tables beside its file."""

    def __init__(self, directory: Path, say: Say) -> None:
        self._directory = directory
        self._say = say
        self._cluster = Cluster(
            brokers=BROKERS,
            racks=RACKS,
            data=directory / "cluster",
            settings=SETTINGS,
            faults=False,
        )
        self.targets = Targets(orders=TOPIC, topics={REVENUE: REVENUE})

    @property
    def servers(self) -> str:
        return self._cluster.bootstrap_servers

    def start(self) -> None:
        self._cluster.start(timeout_s=WITHIN_S)
        try:
            self._create_topics()
        except BaseException:
            self._cluster.close()
            raise

    def close(self) -> None:
        self._cluster.close()

    def inject_failures(self, flow: Flow) -> None:
        """Kill a leader and restart it, then a whole rack, then the transaction coordinator."""
        leader = self._leader()
        self._kill_writers((leader,), f"broker {leader}, which leads {TOPIC}-0", flow, {0})
        flow.pause()
        self._restart(leader)
        flow.pause()
        leader = self._leader()
        rack, nodes = next(each for each in self._cluster.racks.items() if leader in each[1])
        names = " and ".join(map(str, nodes))
        description = f"rack {rack}: brokers {names}, half of the cluster"
        self._kill_writers(nodes, description, flow, set(range(PARTITIONS)))
        flow.pause()
        self._restart(*nodes)
        flow.pause()
        self._restart(self._kill_coordinator(flow))

    def audit_arguments(self) -> list[str]:
        """Through the brokers, and on the disks of all replicas."""
        table = self._directory / VALID
        return ["--segments", str(self._cluster.data), "--published-table", str(table)]

    def published(self) -> PublishedOrders:
        return published_tables(self._directory, self.servers, revenue=REVENUE)

    # Inside.

    def _create_topics(self) -> None:
        racks = ", ".join(
            f"rack {name}: brokers {' and '.join(map(str, nodes))}"
            for name, nodes in self._cluster.racks.items()
        )
        self._say(f"four brokers are ready ({racks}), and a fifth node that only votes")
        configs = {"min.insync.replicas": str(COPIES_MIN)}
        topics = {TOPIC: PARTITIONS, REVENUE: PARTITIONS}
        create_topics(self.servers, topics, replicas=BROKERS, configs=configs)
        self._wait_until_in_sync(*topics)
        self._say(
            f"topics {TOPIC} and {REVENUE}: {PARTITIONS} partitions, each on all four brokers; "
            f"a write needs at least {COPIES_MIN} of them"
        )

    def _kill_writers(
        self, nodes: tuple[int, ...], description: str, flow: Flow, partitions: set[int]
    ) -> None:
        """kill -9, and wait until writes to these partitions continue."""
        stream = flow.stream
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

    def _kill_coordinator(self, flow: Flow) -> int:
        """kill -9 of the transaction coordinator while a batch is open, and wait until that batch
        is published under another one."""
        transactional_id = self.targets.revenue_id
        killed = 0
        with Admin({"bootstrap.servers": self.servers}) as admin:

            def coordinator() -> int:
                question = find_transaction_coordinators([transactional_id])
                found = admin.ask(question, timeout_s=WITHIN_S)[transactional_id]
                if isinstance(found, ErrorCode):
                    raise DemoFailed(f"nobody coordinates {transactional_id}: {found.name}")
                return found

            def is_open() -> bool:
                nonlocal killed
                killed = coordinator()
                question = describe_transaction(transactional_id)
                return admin.ask(question, timeout_s=WITHIN_S).state == ONGOING

            flow.wait(is_open, "an open transaction")
            self._cluster.kill(killed)
            killed_s, before = time.monotonic(), flow.revenue.done
            self._say(
                f"[bold]kill -9[/bold] of broker {killed}, the transaction coordinator of "
                f"{REVENUE}, in an open transaction"
            )
            flow.wait(lambda: flow.revenue.done != before, "the next batch of the revenue")
            paused_s = time.monotonic() - killed_s
            self._say(
                f"broker {coordinator()} coordinates the transactions of {REVENUE}; "
                f"the batch was published after {paused_s:.2f} s"
            )
        return killed

    def _restart(self, *nodes: int) -> None:
        """Start the brokers again, and wait until they have caught up."""
        self._cluster.restart(*nodes)
        self._wait_until_in_sync(TOPIC, REVENUE, OFFSETS_TOPIC, TRANSACTIONS_TOPIC)
        back = " and ".join(map(str, nodes))
        self._say(f"started again: {back} caught up, all four copies are in sync")

    def _leader(self) -> int:
        leader = self._cluster.wait_leader(TOPIC, 0, timeout_s=WITHIN_S)
        assert leader is not None
        return leader

    def _wait_until_in_sync(self, *topics: str) -> None:
        for topic in topics:
            for partition in range(PARTITIONS):
                self._cluster.wait_isr(topic, partition, timeout_s=WITHIN_S)
