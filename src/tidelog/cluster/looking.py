"""What a cluster says of itself, and waiting until it says what one hopes for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

from tidelog.cluster.errors import ClusterError
from tidelog.cluster.members import WAIT_WITHIN_S, Members, ids

if TYPE_CHECKING:
    from tidelog.client.admin.topics import PartitionDescription
    from tidelog.cluster.observing import Observer

ANSWER_WITHIN_S = 20.0
UNKNOWN_WITHIN_S = 1.0
"""So long a topic may be unknown to those that answer, since it may have been made just now."""
_ROUND_S = 0.5


class Looking(Members):
    """Questions go to every node that runs and is not paused, and the newest answer counts."""

    def __init__(self) -> None:
        super().__init__()
        self._observer: Observer | None = None

    # Now.

    def controller(self) -> int | None:
        """The active controller; None: nobody knows of one."""
        told = self.observer.quorum(self.launcher.responsive())
        return None if told is None else told.leader_id

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Who leads now; None: nobody does."""
        return self.partition(topic, partition).leader_id

    def leader_epoch(self, topic: str, partition: int = 0) -> int | None:
        return self.partition(topic, partition).leader_epoch

    def isr(self, topic: str, partition: int = 0) -> frozenset[int]:
        return frozenset(self.partition(topic, partition).isr)

    def replicas(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """In the order of preference."""
        return self.partition(topic, partition).replicas

    def followers(self, topic: str, partition: int = 0) -> tuple[int, ...]:
        """Those that hold the partition and do not lead it, in sync or not."""
        told = self.partition(topic, partition)
        return tuple(each for each in told.replicas if each != told.leader_id)

    def partition(self, topic: str, partition: int = 0) -> PartitionDescription:
        """Everything about a partition; ClusterError if there is none, or nobody answers."""
        started_s = time.monotonic()
        while True:
            told = self.observer.topic(self.launcher.responsive(), topic)
            if told is not None and partition in told.partitions:
                return told.partitions[partition]
            waited_s = time.monotonic() - started_s
            if told is not None and waited_s > UNKNOWN_WITHIN_S:
                raise ClusterError(f"there is no partition {topic}-{partition}")
            if waited_s > ANSWER_WITHIN_S or not self.launcher.responsive():
                raise ClusterError(f"no node answers that could tell of {topic}-{partition}")
            self._pause.wait(_ROUND_S / 10)

    def unfenced(self) -> frozenset[int]:
        """The brokers that may lead, as the active controller says, or whoever answers."""
        return self.observer.unfenced(self.launcher.responsive())

    # Waiting.

    def wait_ready(
        self,
        *,
        timeout_s: float = WAIT_WITHIN_S,
        on_step: Callable[[str], None] | None = None,
    ) -> None:
        """Until every node runs, and every broker says that all brokers are unfenced."""
        from tidelog.cluster.observing import unfenced  # while the brokers load what they need

        launcher = self.launcher
        brokers = frozenset(self.broker_ids)
        known: dict[int, frozenset[int]] = {}

        def is_ready() -> bool:
            launcher.check_alive(self.node_ids)
            told = self.observer.clusters(brokers, timeout_s=_ROUND_S)
            known.clear()
            known.update((node_id, unfenced(each)) for node_id, each in told.items())
            if on_step is not None:
                for node_id in sorted(known):
                    on_step(f"broker {node_id} knows of {ids(known[node_id])}")
            return all(known.get(each) == brokers for each in brokers)

        def why_not() -> str:
            late = sorted(each for each in brokers if known.get(each) != brokers)
            logs = ", ".join(str(launcher.directory.log(each)) for each in late)
            return f"brokers {ids(late)} to know all others (logs: {logs})"

        self.wait_until(is_ready, why_not, timeout_s=timeout_s)

    def wait_unfenced(
        self, broker_ids: Iterable[int] | None = None, *, timeout_s: float = WAIT_WITHIN_S
    ) -> None:
        """Until exactly these brokers may lead; all, if none are named."""
        wanted = frozenset(self.broker_ids if broker_ids is None else broker_ids)
        seen: frozenset[int] = frozenset()

        def is_so() -> bool:
            nonlocal seen
            seen = self.unfenced()
            return seen == wanted

        def why_not() -> str:
            return f"unfenced brokers {ids(wanted)}: they are {ids(seen)}"

        self.wait_until(is_so, why_not, timeout_s=timeout_s)

    def wait_leader(
        self,
        topic: str,
        partition: int = 0,
        leader: int | Literal["anyone"] | None = "anyone",
        *,
        timeout_s: float = WAIT_WITHIN_S,
    ) -> int | None:
        """Until this broker leads, or anyone that runs; None: until nobody does. Says who it is."""
        seen: int | None = None

        def is_so() -> bool:
            nonlocal seen
            told = self._look(topic, partition)
            seen = None if told is None else told.leader_id
            if leader == "anyone":
                return seen is not None and self.is_running(seen)
            return told is not None and seen == leader

        def why_not() -> str:
            return f"leader {leader} of {topic}-{partition}: it is {seen}"

        self.wait_until(is_so, why_not, timeout_s=timeout_s)
        return seen

    def wait_isr(
        self,
        topic: str,
        partition: int = 0,
        isr: Iterable[int] | None = None,
        *,
        timeout_s: float = WAIT_WITHIN_S,
    ) -> None:
        """Until exactly these are in sync; without names, all replicas."""
        wanted = None if isr is None else frozenset(isr)
        seen: frozenset[int] = frozenset()

        def is_so() -> bool:
            nonlocal seen
            told = self._look(topic, partition)
            seen = frozenset() if told is None else frozenset(told.isr)
            return told is not None and seen == (
                frozenset(told.replicas) if wanted is None else wanted
            )

        def why_not() -> str:
            names = "all replicas" if wanted is None else ids(wanted)
            return f"{names} in sync for {topic}-{partition}: it is {ids(seen)}"

        self.wait_until(is_so, why_not, timeout_s=timeout_s)

    # Inside.

    @property
    def observer(self) -> Observer:
        """For questions of one's own to several nodes at once."""
        from tidelog.cluster.observing import Observer

        with self._lock:
            if self._observer is None:
                self._observer = Observer(self.launcher.plan)
            return self._observer

    def _look(self, topic: str, partition: int) -> PartitionDescription | None:
        told = self.observer.topic(self.launcher.responsive(), topic)
        return None if told is None else told.partitions.get(partition)
