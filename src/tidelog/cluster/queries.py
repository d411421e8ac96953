"""What a cluster says of itself, and waiting until it says what is wanted.

Every node that runs and is not paused is asked, and the newest answer counts (admin_fanout.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from threading import Event
from typing import TYPE_CHECKING, Literal

from tidelog.cluster.errors import ClusterError
from tidelog.cluster.members import Members, id_list, wait_until

if TYPE_CHECKING:
    from tidelog.client.admin.topics import PartitionDescription
    from tidelog.cluster.admin_fanout import AdminFanout

ANSWER_TIMEOUT_S = 20.0
UNKNOWN_TOPIC_GRACE_S = 1.0
"""How long the brokers may not know a topic yet that was made just now."""
_ROUND_TIMEOUT_S = 0.5

ANYONE: Literal["anyone"] = "anyone"


class Queries:
    """Questions about a running cluster."""

    def __init__(self, members: Members) -> None:
        self._members = members
        self._fanout: AdminFanout | None = None

    @property
    def fanout(self) -> AdminFanout:
        """For requests to several nodes at once; made when it is first used."""
        from tidelog.cluster.admin_fanout import AdminFanout

        with self._members.lock:
            if self._fanout is None:
                self._fanout = AdminFanout(self._members.launcher.plan)
            return self._fanout

    def close(self) -> None:
        """Close all connections; the next question opens new ones."""
        if self._fanout is not None:
            self._fanout.close()
            self._fanout = None

    # Now.

    def controller(self) -> int | None:
        quorum = self.fanout.quorum(self._responsive())
        return None if quorum is None else quorum.leader_id

    def partition(self, topic: str, partition: int) -> PartitionDescription:
        """Everything about a partition; ClusterError if there is none, or no node answers."""
        started_s = time.monotonic()
        pause = Event()
        while True:
            found = self.fanout.topic(self._responsive(), topic)
            if found is not None and partition in found.partitions:
                return found.partitions[partition]
            waited_s = time.monotonic() - started_s
            if found is not None and waited_s > UNKNOWN_TOPIC_GRACE_S:
                raise ClusterError(f"there is no partition {topic}-{partition}")
            if waited_s > ANSWER_TIMEOUT_S or not self._responsive():
                raise ClusterError(f"no node answers for {topic}-{partition}")
            pause.wait(_ROUND_TIMEOUT_S / 10)

    def unfenced(self) -> frozenset[int]:
        return self.fanout.unfenced(self._responsive())

    # Waiting.

    def wait_ready(self, *, timeout_s: float, on_step: Callable[[str], None] | None) -> None:
        from tidelog.cluster.admin_fanout import unfenced  # while the brokers load what they need

        launcher = self._members.launcher
        brokers = frozenset(self._members.broker_ids)
        known: dict[int, frozenset[int]] = {}

        def is_ready() -> bool:
            launcher.check_alive(self._members.node_ids)
            views = self.fanout.clusters(brokers, timeout_s=_ROUND_TIMEOUT_S)
            known.clear()
            known.update((node_id, unfenced(each)) for node_id, each in views.items())
            if on_step is not None:
                for node_id in sorted(known):
                    on_step(f"broker {node_id} knows of {id_list(known[node_id])}")
            return all(known.get(each) == brokers for each in brokers)

        def awaited() -> str:
            late = sorted(each for each in brokers if known.get(each) != brokers)
            logs = ", ".join(str(launcher.directory.log(each)) for each in late)
            return f"brokers {id_list(late)} to know all others (logs: {logs})"

        wait_until(is_ready, awaited, timeout_s=timeout_s)

    def wait_unfenced(self, broker_ids: Iterable[int] | None, *, timeout_s: float) -> None:
        wanted = frozenset(self._members.broker_ids if broker_ids is None else broker_ids)
        seen: frozenset[int] = frozenset()

        def is_reached() -> bool:
            nonlocal seen
            seen = self.unfenced()
            return seen == wanted

        def awaited() -> str:
            return f"unfenced brokers {id_list(wanted)}; now: {id_list(seen)}"

        wait_until(is_reached, awaited, timeout_s=timeout_s)

    def wait_leader(
        self,
        topic: str,
        partition: int,
        leader: int | Literal["anyone"] | None,
        *,
        timeout_s: float,
    ) -> int | None:
        seen: int | None = None

        def is_reached() -> bool:
            nonlocal seen
            found = self._find(topic, partition)
            seen = None if found is None else found.leader_id
            if leader == ANYONE:
                return seen is not None and self._members.process(seen) is not None
            return found is not None and seen == leader

        def awaited() -> str:
            wanted = "a running leader" if leader == ANYONE else _leader_text(leader)
            return f"{wanted} of {topic}-{partition}; now: {_leader_text(seen)}"

        wait_until(is_reached, awaited, timeout_s=timeout_s)
        return seen

    def wait_isr(
        self, topic: str, partition: int, isr: Iterable[int] | None, *, timeout_s: float
    ) -> None:
        wanted = None if isr is None else frozenset(isr)
        seen: frozenset[int] = frozenset()

        def is_reached() -> bool:
            nonlocal seen
            found = self._find(topic, partition)
            seen = frozenset() if found is None else frozenset(found.isr)
            return found is not None and seen == (
                frozenset(found.replicas) if wanted is None else wanted
            )

        def awaited() -> str:
            names = "all replicas" if wanted is None else id_list(wanted)
            return f"{names} in the ISR of {topic}-{partition}; now: {id_list(seen)}"

        wait_until(is_reached, awaited, timeout_s=timeout_s)

    def _responsive(self) -> list[int]:
        return self._members.launcher.responsive()

    def _find(self, topic: str, partition: int) -> PartitionDescription | None:
        found = self.fanout.topic(self._responsive(), topic)
        return None if found is None else found.partitions.get(partition)


def _leader_text(leader: int | None) -> str:
    return "no leader" if leader is None else f"leader {leader}"
