"""Asks that are carried out: the right node, the right version, and again as the table says.

An ask ends with one `Told`: an answer that the table does not want to be asked for again, or the
news that there was none in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tidelog.client.admin.question import AnyNode, LeaderOf
from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.connections import NodeKey
from tidelog.client.sink.codes import codes_in
from tidelog.client.sink.coordinators import Coordinators, Nobody
from tidelog.client.sink.decisions import (
    RESENT,
    WAIT_MS,
    Decision,
    decide,
    heaviest,
    name_of_code,
)
from tidelog.client.sink.events import AskedAgain
from tidelog.client.sink.steps import SPOKEN, CoordinatorOf, Step, Whom
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.schema import Message


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A wish: this request, to that node, at this place of the protocol."""

    step: Step
    request: Message
    whom: Whom
    is_resent: bool = True
    """False: after a pause whoever asks is told, and decides himself."""
    not_after_ms: int | None = None
    """What it rests on is too old then: it is not sent any more."""
    patience_ms: int | None = None
    """Its own, instead of what its conversation has left."""


class Pause(NamedTuple):
    """A wish: nothing until then."""

    until_ms: int


class Ending(Enum):
    """How an ask ended."""

    ANSWERED = "answered"
    OUT_OF_TIME = "out of time"
    TOO_LATE = "too late to be sent"


class Told(NamedTuple):
    """What came of an ask."""

    step: Step
    ending: Ending
    decision: Decision
    code: int
    reason: str
    answer: Message | None
    asked_ms: int
    now_ms: int


Then = Callable[[Told], None]


class Asker:
    """Any number of asks and pauses at once, for one sink."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.coordinators = Coordinators(client, name)
        self.back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )
        self._under_way: list[_Asking | _Pausing] = []
        client.attach(self)

    def ask(self, ask: Ask, then: Then, *, deadline_ms: int) -> None:
        if isinstance(ask.whom, LeaderOf):
            self.client.refresh.want_topic(ask.whom.partition.topic)
        self._under_way.append(_Asking(self, ask, then, deadline_ms=deadline_ms))

    def pause(self, pause: Pause, then: Callable[[int], None]) -> None:
        self._under_way.append(_Pausing(pause.until_ms, then))

    def drop_all(self) -> None:
        """Nobody is told anything any more."""
        for each in self._under_way:
            each.is_over = True
        self._under_way.clear()

    def run(self, now_ms: int) -> None:
        """What ends may wish for more, which must not wait for the next turn."""
        done = 0
        while done < len(self._under_way):
            each = self._under_way[done]
            each.run(now_ms)
            done += 1
        self._under_way = [each for each in self._under_way if not each.is_over]

    def deadlines_ms(self) -> Iterable[int | None]:
        for each in self._under_way:
            yield from each.deadlines_ms()
        if self._under_way:
            yield from self.coordinators.deadlines_ms()


class _Pausing:
    """Waits for a time."""

    def __init__(self, until_ms: int, then: Callable[[int], None]) -> None:
        self._until_ms = until_ms
        self._then = then
        self.is_over = False

    def run(self, now_ms: int) -> None:
        if not self.is_over and now_ms >= self._until_ms:
            self.is_over = True
            self._then(now_ms)

    def deadlines_ms(self) -> Iterable[int | None]:
        return (self._until_ms,)


class _Asking:
    """One ask on its way."""

    def __init__(self, asker: Asker, ask: Ask, then: Then, *, deadline_ms: int) -> None:
        self._asker = asker
        self._ask = ask
        self._then = then
        self._deadline_ms = deadline_ms
        self._is_asked = False
        self._asked_ms = 0
        self._retry_at_ms = 0
        self._failures = 0
        self._last: tuple[Decision, int, str] | None = None
        """What the attempt said that is waiting to be made again."""
        self._trouble = "nobody could be reached"
        self.is_over = False

    def deadlines_ms(self) -> Iterable[int | None]:
        return (self._deadline_ms, self._retry_at_ms)

    def run(self, now_ms: int) -> None:
        if self.is_over:
            return
        if now_ms >= self._deadline_ms:
            self._end(Ending.OUT_OF_TIME, Decision.BATCH_LOST, ErrorCode.NONE, now_ms)
            return
        if self._is_asked or now_ms < self._retry_at_ms:
            return
        if self._last is not None and not self._ask.is_resent:
            decision, code, self._trouble = self._last
            self._end(Ending.ANSWERED, decision, code, now_ms)
            return
        if self._ask.not_after_ms is not None and now_ms > self._ask.not_after_ms:
            self._end(Ending.TOO_LATE, Decision.AGAIN, ErrorCode.NONE, now_ms)
            return
        node = self._node(now_ms)
        if isinstance(node, Nobody):
            self._refused(Step.FIND, node.code, now_ms)
        elif node is not None:
            self._send(node, now_ms)

    def _node(self, now_ms: int) -> NodeKey | Nobody | None:
        client = self._asker.client
        whom = self._ask.whom
        if isinstance(whom, AnyNode):
            return client.usable_node(now_ms)
        if isinstance(whom, CoordinatorOf):
            return self._asker.coordinators.node(whom.kind, now_ms)
        if isinstance(whom, LeaderOf):
            broker_id = client.metadata.leader(whom.partition).broker_id
            self._trouble = f"{whom.partition} has no leader that can be reached"
        else:
            broker_id = whom.broker_id
            self._trouble = f"broker {broker_id} could not be reached"
        address = client.metadata.address(broker_id) if broker_id is not None else None
        if broker_id is None or address is None:
            client.refresh.doubt()
            return None
        return broker_id if client.connections.make_usable(broker_id, address, now_ms) else None

    def _send(self, node: NodeKey, now_ms: int) -> None:
        spoken = SPOKEN[self._ask.step]
        connections = self._asker.client.connections
        version = connections.version(node, spoken.request, at_most=spoken.version_max)
        if version is None or version < spoken.version_min:
            self._refused(self._ask.step, ErrorCode.UNSUPPORTED_VERSION, now_ms)
            return
        self._is_asked = True
        self._asked_ms = now_ms
        connections.ask(node, self._ask.request, version, self._answered, now_ms=now_ms)

    def _answered(self, answer: Message | NoAnswer, now_ms: int) -> None:
        self._is_asked = False
        if self.is_over:
            return
        if isinstance(answer, NoAnswer):
            timed_out = answer.reason == "timed out"
            code: int = ErrorCode.REQUEST_TIMED_OUT if timed_out else ErrorCode.NETWORK_EXCEPTION
            reason = f"no answer ({answer.reason})"
        else:
            code = heaviest(self._ask.step, codes_in(answer))
            reason = name_of_code(code)
        decision = decide(self._ask.step, code)
        if decision in RESENT:
            self._again(decision, code, reason, now_ms)
            return
        self._trouble = reason
        told = None if isinstance(answer, NoAnswer) else answer
        self._end(Ending.ANSWERED, decision, code, now_ms, answer=told)

    def _again(self, decision: Decision, code: int, reason: str, now_ms: int) -> None:
        client = self._asker.client
        client.trace.emit(AskedAgain(step=self._ask.step.name, because=reason))
        self._last = (decision, code, reason)
        self._trouble = reason
        if decision == Decision.FIND_AGAIN and isinstance(self._ask.whom, CoordinatorOf):
            self._asker.coordinators.forget(self._ask.whom.kind)
        if decision == Decision.REFRESH:
            client.refresh.doubt()
        if decision == Decision.WAIT:
            self._retry_at_ms = now_ms + WAIT_MS
            return
        self._retry_at_ms = now_ms + self._asker.back_off.pause_ms(self._failures)
        self._failures += 1

    def _refused(self, step: Step, code: int, now_ms: int) -> None:
        """Before it was even sent: nobody else would take it, either."""
        self._trouble = f"{name_of_code(code)} ({step.value})"
        self._end(Ending.ANSWERED, Decision.STOP, code, now_ms)

    def _end(
        self,
        ending: Ending,
        decision: Decision,
        code: int,
        now_ms: int,
        *,
        answer: Message | None = None,
    ) -> None:
        self.is_over = True
        told = Told(
            step=self._ask.step,
            ending=ending,
            decision=decision,
            code=code,
            reason=self._trouble,
            answer=answer,
            asked_ms=self._asked_ms,
            now_ms=now_ms,
        )
        self._then(told)
