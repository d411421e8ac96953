"""The admin: asks questions of the right node until there is an answer or the time is up."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, TypeVar

from tidelog.client.admin.question import (
    AnyNode,
    GroupCoordinatorOf,
    LeaderOf,
    Question,
    RetryLater,
    TheNode,
    TransactionCoordinatorOf,
)
from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.connections import NodeKey
from tidelog.client.group.coordinator_channel import (
    COORDINATOR_MOVED,
    TRANSACTION_KEY_TYPE,
    CoordinatorChannel,
)
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.schema import Message

API_TIMEOUT_MS = 60_000
T = TypeVar("T")


class Failed(NamedTuple):
    """No node answered in time, or none can."""

    reason: str
    is_unsupported: bool = False
    """The node has no such API."""


class AdminMachine:
    """Any number of questions at once."""

    def __init__(self, client: Client) -> None:
        self._client = client

    def ask(
        self,
        question: Question[T],
        then: Callable[[T | Failed, int], None],
        *,
        now_ms: int,
        timeout_ms: int = API_TIMEOUT_MS,
    ) -> None:
        """`then(result, now_ms)` gets what the question promises, or Failed."""
        _RunningQuestion(self._client, question, then, deadline_ms=now_ms + timeout_ms)


class _RunningQuestion(Generic[T]):
    """One question on its way, attached to the client until it is answered."""

    def __init__(
        self,
        client: Client,
        question: Question[T],
        then: Callable[[T | Failed, int], None],
        *,
        deadline_ms: int,
    ) -> None:
        self._client = client
        self._question = question
        self._then = then
        self._deadline_ms = deadline_ms
        self._is_sent = False
        self._failures = 0
        self._retry_at_ms = 0
        self._reason: str | None = None
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )
        self._coordinator: CoordinatorChannel | None = None
        if isinstance(question.target, GroupCoordinatorOf):
            self._coordinator = CoordinatorChannel(client, question.target.group_id)
        elif isinstance(question.target, TransactionCoordinatorOf):
            self._coordinator = CoordinatorChannel(
                client,
                question.target.transactional_id,
                key_type=TRANSACTION_KEY_TYPE,
                connection_name="transaction",
            )
        if isinstance(question.target, LeaderOf):
            client.refresh.add_topic(question.target.partition.topic)
        client.attach(self)

    def run(self, now_ms: int) -> None:
        if now_ms >= self._deadline_ms:
            reason = self._reason or self._none_reached()
            self._end(Failed(f"no answer in time: {reason}"), now_ms)
        elif not self._is_sent and now_ms >= self._retry_at_ms:
            node = self._node(now_ms)
            if node is not None:
                self._send(node, now_ms)

    def deadlines_ms(self) -> Iterable[int | None]:
        yield self._deadline_ms
        yield self._retry_at_ms
        if self._coordinator is not None:
            yield from self._coordinator.deadlines_ms()

    def _node(self, now_ms: int) -> NodeKey | None:
        """The node to ask now; None while there is none."""
        target = self._question.target
        if isinstance(target, AnyNode):
            return self._client.usable_node(now_ms)
        if isinstance(target, GroupCoordinatorOf):
            return self._coordinator_node(f"group {target.group_id}", now_ms)
        if isinstance(target, TransactionCoordinatorOf):
            return self._coordinator_node(f"transactional id {target.transactional_id}", now_ms)
        metadata = self._client.metadata
        connections = self._client.connections
        if isinstance(target, TheNode):
            self._reason = f"{target.address} could not be reached"
            key = f"{target.address}{target.connection_name}"
            return key if connections.make_usable(key, target.address, now_ms) else None
        if isinstance(target, LeaderOf):
            broker_id = metadata.leader(target.partition).broker_id
            self._reason = f"{target.partition} has no leader"
        else:
            broker_id = target.broker_id
            self._reason = f"broker {broker_id} could not be reached"
        address = metadata.address(broker_id) if broker_id is not None else None
        if broker_id is None or address is None:
            self._client.refresh.request_update()
            return None
        return broker_id if connections.make_usable(broker_id, address, now_ms) else None

    def _coordinator_node(self, of: str, now_ms: int) -> NodeKey | None:
        coordinator = self._coordinator
        assert coordinator is not None
        if coordinator.is_usable(now_ms):
            return coordinator.key
        if coordinator.refusal is not None:
            reason = f"{of} has no coordinator: {coordinator.refusal.name}"
            self._end(Failed(reason), now_ms)
        elif coordinator.reason is not None:
            self._reason = f"the coordinator of {of}: {coordinator.reason}"
        return None

    def _none_reached(self) -> str:
        failures = self._client.connections.failures()
        tried = ", ".join(f"{address} ({reason})" for address, reason in failures)
        return f"no node could be reached: {tried}" if tried else "no node could be reached"

    def _send(self, node: NodeKey, now_ms: int) -> None:
        question = self._question
        version = self._client.connections.version(
            node, type(question.request), at_most=question.version_max
        )
        if version is None or version < (question.version_min or 0):
            name = type(question.request).__name__
            reason = f"node {node} speaks no version of {name} that we do"
            self._end(Failed(reason, is_unsupported=True), now_ms)
            return
        self._is_sent = True
        self._client.connections.send(
            node, question.request, version, self._answered, now_ms=now_ms
        )

    def _answered(self, answer: Message | NoAnswer, now_ms: int) -> None:
        self._is_sent = False
        if isinstance(answer, NoAnswer):
            self._forget_coordinator()
            self._retry(answer.reason, now_ms)
            return
        result = self._question.read(answer)
        if isinstance(result, RetryLater):
            self._client.refresh.request_update()
            if result.error in COORDINATOR_MOVED:
                self._forget_coordinator()
            self._retry(result.error.name, now_ms)
        else:
            self._end(result, now_ms)

    def _forget_coordinator(self) -> None:
        if self._coordinator is not None:
            self._coordinator.forget()

    def _retry(self, reason: str, now_ms: int) -> None:
        self._reason = reason
        self._retry_at_ms = now_ms + self._back_off.pause_ms(self._failures)
        self._failures += 1

    def _end(self, result: T | Failed, now_ms: int) -> None:
        if self._client.is_attached(self):
            self._client.detach(self)
            self._then(result, now_ms)
