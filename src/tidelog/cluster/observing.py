"""Looking at a cluster from outside: the same question to several nodes at once, over sockets.

A node may be dead, paused or cut off and believe old things. So nobody is waited for longer than a
moment, and the answers are weighed: the active controller is the one with the highest quorum epoch
that anybody names, and its own picture of a partition is the newest there can be.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from contextlib import suppress
from typing import TypeVar

from tidelog.client.admin.admin import AdminMachine, Failed
from tidelog.client.admin.cluster import (
    ClusterDescription,
    QuorumDescription,
    describe_cluster,
    describe_quorum,
)
from tidelog.client.admin.question import Question, TheNode
from tidelog.client.admin.topics import (
    PartitionDescription,
    TopicDescription,
    describe_topic_partitions,
)
from tidelog.client.config import Address, ClientConfig
from tidelog.client.shells.loop import Loop
from tidelog.cluster.layout import ClusterPlan, NodePlan
from tidelog.core.model.errors import ErrorCode

CLIENT_ID = "tidelog-cluster"
ANSWER_WITHIN_S = 2.0
_REQUEST_TIMEOUT_MS = 3_000
_BACK_OFF_MS = 10
QUORUM_WITHIN_S = 0.5
"""Nodes pass this question on to the active controller, which may be the one that is paused. So it
has connections of its own, and not much time unless it is the only one."""

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class Observer:
    """Keeps its connections; may be used by several threads, one at a time."""

    def __init__(self, plan: ClusterPlan) -> None:
        self._plan = plan
        self._addresses = {node.id: _address(node) for node in plan.nodes}
        self._voters = sum(node.is_controller for node in plan.nodes)
        self._lock = threading.Lock()
        self._loop: Loop | None = None

    def close(self) -> None:
        with self._lock:
            if self._loop is not None:
                self._loop.close()
                self._loop = None

    def ask_each(
        self,
        questions: Mapping[K, tuple[int, Question[T]]],
        *,
        timeout_s: float = ANSWER_WITHIN_S,
        quorum_within_s: float = QUORUM_WITHIN_S,
        is_enough: Callable[[Mapping[K, T]], bool] | None = None,
    ) -> dict[K, T]:
        """Each question to a node, all at once: what is told in time, or until it is enough."""
        told: dict[K, T] = {}
        left = set(questions)

        def hear(key: K, result: T | Failed) -> None:
            left.discard(key)
            if not isinstance(result, Failed):
                told[key] = result

        with self._lock:
            loop = self._loop = self._loop or self._new_loop()
            admin = AdminMachine(loop.client)
            for key, (node_id, question) in questions.items():
                is_passed_on = question.request is QUORUM_NOW.request
                within_s = min(timeout_s, quorum_within_s) if is_passed_on else timeout_s
                admin.ask(
                    question.to(
                        TheNode(self._addresses[node_id], "quorum" if is_passed_on else "")
                    ),
                    lambda result, _, key=key: hear(key, result),  # type: ignore[misc]
                    now_ms=loop.now_ms(),
                    timeout_ms=int(within_s * 1_000),
                )
            deadline_ms = loop.now_ms() + int(timeout_s * 1_000) + 1_000
            wait_ms = 0
            while left and loop.now_ms() < deadline_ms:
                loop.turn(wait_ms)
                wait_ms = max(0, deadline_ms - loop.now_ms())
                if is_enough is not None and is_enough(told):
                    break
            return dict(told)

    def ask_nodes(
        self, nodes: Iterable[int], question: Question[T], *, timeout_s: float = ANSWER_WITHIN_S
    ) -> dict[int, T]:
        """The same question to each of them."""
        return self.ask_each({each: (each, question) for each in nodes}, timeout_s=timeout_s)

    def clusters(
        self, nodes: Iterable[int], *, timeout_s: float = ANSWER_WITHIN_S
    ) -> dict[int, ClusterDescription]:
        """The cluster as each of them sees it."""
        return self.ask_nodes(nodes, describe_cluster(with_fenced=True), timeout_s=timeout_s)

    def quorum(
        self, nodes: Iterable[int], *, timeout_s: float = ANSWER_WITHIN_S
    ) -> QuorumDescription | None:
        """As the newest leader sees it; None if there is none that anybody knows of."""
        told = self.ask_each(
            {each: (each, QUORUM_NOW) for each in nodes},
            timeout_s=timeout_s,
            quorum_within_s=timeout_s,
            is_enough=lambda told: self._quorum_of(told.values()) is not None,
        )
        return newest_quorum(told.values())

    def ask_with_quorum(
        self, nodes: Iterable[int], question: Question[T], *, timeout_s: float = ANSWER_WITHIN_S
    ) -> tuple[int | None, dict[int, T]]:
        """The active controller, and the answers; at least its own if it gives one."""
        questions: dict[tuple[int, bool], tuple[int, Question[T | QuorumDescription | None]]] = {}
        for each in nodes:
            questions[each, False] = (each, QUORUM_NOW)  # type: ignore[assignment]
            questions[each, True] = (each, question)  # type: ignore[assignment]

        def is_enough(told: Mapping[tuple[int, bool], object]) -> bool:
            quorum = self._quorum_of(told.values())
            return quorum is not None and (quorum.leader_id, True) in told

        told = self.ask_each(questions, timeout_s=timeout_s, is_enough=is_enough)
        quorum = newest_quorum(told.values())
        answers = {node: answer for (node, is_wanted), answer in told.items() if is_wanted}
        return None if quorum is None else quorum.leader_id, answers  # type: ignore[return-value]

    def topic(self, nodes: Iterable[int], name: str) -> TopicDescription | None:
        """As the active controller sees it, or whoever seems to know best; None: nobody answers."""
        controller, told = self.ask_with_quorum(nodes, describe_topic_partitions(name))
        return best_told(told, controller=controller)

    def unfenced(self, nodes: Iterable[int]) -> frozenset[int]:
        """The brokers that may lead, as the active controller sees it, or whoever answers."""
        controller, told = self.ask_with_quorum(nodes, describe_cluster(with_fenced=True))
        if controller in told:
            return unfenced(told[controller])
        return max(map(unfenced, told.values()), key=len, default=frozenset())

    def _quorum_of(self, told: Iterable[object]) -> QuorumDescription | None:
        """The newest quorum, once so many have told the same that there can be no newer one."""
        quorums = [each for each in told if isinstance(each, QuorumDescription)]
        newest = newest_quorum(quorums)
        if newest is None:
            return None
        agreeing = sum(each.quorum_epoch == newest.quorum_epoch for each in quorums)
        return newest if agreeing > self._voters // 2 else None

    def _new_loop(self) -> Loop:
        config = ClientConfig(
            bootstrap=tuple(self._addresses.values()),
            client_id=CLIENT_ID,
            request_timeout_ms=_REQUEST_TIMEOUT_MS,
            retry_backoff_ms=_BACK_OFF_MS,
            retry_backoff_max_ms=_BACK_OFF_MS,
            reconnect_backoff_ms=_BACK_OFF_MS,
            reconnect_backoff_max_ms=_BACK_OFF_MS,
        )
        return Loop(config)


QUORUM_NOW = describe_quorum().at_once()


def newest_quorum(told: Iterable[object]) -> QuorumDescription | None:
    """The one with the highest quorum epoch, if it has a leader."""
    known = [
        each for each in told if isinstance(each, QuorumDescription) and each.leader_id is not None
    ]
    return max(known, key=lambda each: each.quorum_epoch, default=None)


def unfenced(told: ClusterDescription) -> frozenset[int]:
    return frozenset(told.brokers) - told.fenced


def best_told(
    topics: Mapping[int, TopicDescription], *, controller: int | None
) -> TopicDescription | None:
    """The controller's own word, else the one with the newest leader epochs, else the commonest."""
    if controller is not None and controller in topics:
        return topics[controller]
    known = {node: each for node, each in topics.items() if each.error == ErrorCode.NONE}
    if not known:
        return next(iter(topics.values()), None)
    commonest = Counter(_gist(each) for each in known.values())
    return max(known.values(), key=lambda each: (_newness(each), commonest[_gist(each)]))


def partition_of(told: TopicDescription | None, index: int) -> PartitionDescription | None:
    with suppress(KeyError):
        return None if told is None else told.partitions[index]
    return None


def _newness(told: TopicDescription) -> int:
    return sum(each.leader_epoch or 0 for each in told.partitions.values())


def _gist(told: TopicDescription) -> tuple[object, ...]:
    return tuple(sorted(told.partitions.items()))


def _address(node: NodePlan) -> Address:
    host, _, port = node.address.rpartition(":")
    return Address(host, int(port))
