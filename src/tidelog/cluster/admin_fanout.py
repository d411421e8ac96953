"""Admin requests to several nodes of a cluster at once, and which of their answers counts.

A node may be dead, paused or cut off and believe old things. So no node is waited for longer than a
moment, and the answers are weighed: the active controller is the one with the highest quorum epoch
that any node names, and its own description of a partition is the newest there can be.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import TypeVar

from tidelog.client.admin.admin import AdminMachine, Failed
from tidelog.client.admin.cluster import (
    ClusterDescription,
    QuorumInfo,
    describe_cluster,
    describe_quorum,
)
from tidelog.client.admin.question import Question, TheNode
from tidelog.client.admin.topics import (
    TopicDescription,
    describe_topic_partitions,
)
from tidelog.client.config import Address, ClientConfig
from tidelog.client.shells.loop import Loop
from tidelog.cluster.layout import ClusterPlan, NodePlan
from tidelog.core.model.errors import ErrorCode

CLIENT_ID = "tidelog-cluster"
ANSWER_TIMEOUT_S = 2.0
_REQUEST_TIMEOUT_MS = 3_000
_BACKOFF_MS = 10
QUORUM_TIMEOUT_S = 0.5
"""Nodes pass this question on to the active controller, which may be the one that is paused. So it
has connections of its own, and not much time unless it is the only one."""

K = TypeVar("K", bound=Hashable)
T = TypeVar("T")


class AdminFanout:
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
        timeout_s: float = ANSWER_TIMEOUT_S,
        quorum_timeout_s: float = QUORUM_TIMEOUT_S,
        is_enough: Callable[[Mapping[K, T]], bool] | None = None,
    ) -> dict[K, T]:
        """Each question to a node, all at once: what is answered in time, or until it is enough."""
        answers: dict[K, T] = {}
        left = set(questions)

        def on_result(key: K, result: T | Failed) -> None:
            left.discard(key)
            if not isinstance(result, Failed):
                answers[key] = result

        with self._lock:
            loop = self._loop = self._loop or self._new_loop()
            admin = AdminMachine(loop.client)
            for key, (node_id, question) in questions.items():
                is_passed_on = question.request is QUORUM_NOW.request
                answer_timeout_s = min(timeout_s, quorum_timeout_s) if is_passed_on else timeout_s
                admin.ask(
                    question.to(
                        TheNode(self._addresses[node_id], "quorum" if is_passed_on else "")
                    ),
                    lambda result, _, key=key: on_result(key, result),  # type: ignore[misc]
                    now_ms=loop.now_ms(),
                    timeout_ms=int(answer_timeout_s * 1_000),
                )
            deadline_ms = loop.now_ms() + int(timeout_s * 1_000) + 1_000
            wait_ms = 0
            while left and loop.now_ms() < deadline_ms:
                loop.turn(wait_ms)
                wait_ms = max(0, deadline_ms - loop.now_ms())
                if is_enough is not None and is_enough(answers):
                    break
            return dict(answers)

    def ask_nodes(
        self, nodes: Iterable[int], question: Question[T], *, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> dict[int, T]:
        """The same question to each of them."""
        return self.ask_each({each: (each, question) for each in nodes}, timeout_s=timeout_s)

    def clusters(
        self, nodes: Iterable[int], *, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> dict[int, ClusterDescription]:
        """The cluster as each of them sees it."""
        return self.ask_nodes(nodes, describe_cluster(with_fenced=True), timeout_s=timeout_s)

    def quorum(
        self, nodes: Iterable[int], *, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> QuorumInfo | None:
        """As the newest leader sees it; None if no node knows of one."""
        answers = self.ask_each(
            {each: (each, QUORUM_NOW) for each in nodes},
            timeout_s=timeout_s,
            quorum_timeout_s=timeout_s,
            is_enough=lambda answers: self._quorum_of(answers.values()) is not None,
        )
        return newest_quorum(answers.values())

    def ask_with_quorum(
        self, nodes: Iterable[int], question: Question[T], *, timeout_s: float = ANSWER_TIMEOUT_S
    ) -> tuple[int | None, dict[int, T]]:
        """The active controller, and the answers; at least its own if it gives one."""
        questions: dict[tuple[int, bool], tuple[int, Question[T | QuorumInfo | None]]] = {}
        for each in nodes:
            questions[each, False] = (each, QUORUM_NOW)  # type: ignore[assignment]
            questions[each, True] = (each, question)  # type: ignore[assignment]

        def is_enough(answers: Mapping[tuple[int, bool], object]) -> bool:
            quorum = self._quorum_of(answers.values())
            return quorum is not None and (quorum.leader_id, True) in answers

        answers = self.ask_each(questions, timeout_s=timeout_s, is_enough=is_enough)
        quorum = newest_quorum(answers.values())
        wanted = {node: answer for (node, is_wanted), answer in answers.items() if is_wanted}
        return None if quorum is None else quorum.leader_id, wanted  # type: ignore[return-value]

    def topic(self, nodes: Iterable[int], name: str) -> TopicDescription | None:
        """As the active controller sees it, or the best informed node; None: no node answers."""
        controller, topics = self.ask_with_quorum(nodes, describe_topic_partitions(name))
        return best_description(topics, controller=controller)

    def unfenced(self, nodes: Iterable[int]) -> frozenset[int]:
        """The brokers that may lead, as the active controller sees it, or any node that answers."""
        controller, views = self.ask_with_quorum(nodes, describe_cluster(with_fenced=True))
        if controller in views:
            return unfenced(views[controller])
        return max(map(unfenced, views.values()), key=len, default=frozenset())

    def _quorum_of(self, answers: Iterable[object]) -> QuorumInfo | None:
        """The newest quorum, once a majority of voters agrees: then there can be no newer one."""
        quorums = [each for each in answers if isinstance(each, QuorumInfo)]
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
            retry_backoff_ms=_BACKOFF_MS,
            retry_backoff_max_ms=_BACKOFF_MS,
            reconnect_backoff_ms=_BACKOFF_MS,
            reconnect_backoff_max_ms=_BACKOFF_MS,
        )
        return Loop(config)


QUORUM_NOW = describe_quorum().at_once()


def newest_quorum(answers: Iterable[object]) -> QuorumInfo | None:
    """The one with the highest quorum epoch, if it has a leader."""
    quorums = [each for each in answers if isinstance(each, QuorumInfo)]
    known = [each for each in quorums if each.leader_id is not None]
    return max(known, key=lambda each: each.quorum_epoch, default=None)


def unfenced(cluster: ClusterDescription) -> frozenset[int]:
    return frozenset(cluster.brokers) - cluster.fenced


def best_description(
    topics: Mapping[int, TopicDescription], *, controller: int | None
) -> TopicDescription | None:
    """The controller's answer, else that with the newest leader epochs, else the commonest."""
    if controller is not None and controller in topics:
        return topics[controller]
    known = {node: each for node, each in topics.items() if each.error == ErrorCode.NONE}
    if not known:
        return next(iter(topics.values()), None)
    commonest = Counter(_content(each) for each in known.values())
    return max(known.values(), key=lambda each: (_newness(each), commonest[_content(each)]))


def _newness(topic: TopicDescription) -> int:
    return sum(each.leader_epoch or 0 for each in topic.partitions.values())


def _content(topic: TopicDescription) -> tuple[object, ...]:
    return tuple(sorted(topic.partitions.items()))


def _address(node: NodePlan) -> Address:
    host, _, port = node.address.rpartition(":")
    return Address(host, int(port))
