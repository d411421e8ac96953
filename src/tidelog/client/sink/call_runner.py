"""Carries calls out: to the right node, in the right version, and again as the table says.

A call ends with one `SinkReply`: an answer after which the table wants no other try, or the news
that there was none in time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.client.admin.question import AnyNode, LeaderOf
from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.config import Address
from tidelog.client.connections import NodeKey
from tidelog.client.events import CallRetried
from tidelog.client.sink.decisions import (
    RESENT,
    WAIT_MS,
    ErrorDecision,
    code_name,
    decide,
    heaviest,
)
from tidelog.client.sink.replies import CallStatus, SinkReply, codes_in
from tidelog.client.sink.requests import (
    STEP_APIS,
    CoordinatorOf,
    CoordinatorType,
    Pause,
    SinkCall,
    SinkStep,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_10_find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidelog.core.wire.schema import Message

UNREACHABLE_MS = 500
"""How long a coordinator may be unreachable before it is looked up again."""
OnReply = Callable[[SinkReply], None]


class CallRunner:
    """Runs any number of calls and pauses at once, for one sink."""

    def __init__(self, client: Client, name: str) -> None:
        self.client = client
        self.coordinators = Coordinators(client, name)
        self.back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )
        self._under_way: list[_RunningCall | _RunningPause] = []
        client.attach(self)

    def start(self, call: SinkCall, then: OnReply, *, deadline_ms: int) -> None:
        if isinstance(call.target, LeaderOf):
            self.client.refresh.add_topic(call.target.partition.topic)
        self._under_way.append(_RunningCall(self, call, then, deadline_ms=deadline_ms))

    def pause(self, pause: Pause, then: Callable[[int], None]) -> None:
        self._under_way.append(_RunningPause(pause.until_ms, then))

    def drop_all(self) -> None:
        """No reply is delivered any more."""
        for each in self._under_way:
            each.is_over = True
        self._under_way.clear()

    def run(self, now_ms: int) -> None:
        """A call that ends may start others, which must not wait for the next turn."""
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


class _RunningPause:
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


class _RunningCall:
    """One call on its way."""

    def __init__(
        self, runner: CallRunner, call: SinkCall, then: OnReply, *, deadline_ms: int
    ) -> None:
        self._runner = runner
        self._call = call
        self._then = then
        self._deadline_ms = deadline_ms
        self._is_sent = False
        self._sent_ms = 0
        self._retry_at_ms = 0
        self._failures = 0
        self._last: tuple[ErrorDecision, int, str] | None = None
        """Why the last attempt failed, while the next one waits."""
        self._reason = "no broker could be reached"
        self.is_over = False

    def deadlines_ms(self) -> Iterable[int | None]:
        return (self._deadline_ms, self._retry_at_ms)

    def run(self, now_ms: int) -> None:
        if self.is_over:
            return
        if now_ms >= self._deadline_ms:
            self._end(CallStatus.OUT_OF_TIME, ErrorDecision.BATCH_LOST, ErrorCode.NONE, now_ms)
            return
        if self._is_sent or now_ms < self._retry_at_ms:
            return
        if self._last is not None and not self._call.is_resent:
            decision, code, self._reason = self._last
            self._end(CallStatus.ANSWERED, decision, code, now_ms)
            return
        if self._call.not_after_ms is not None and now_ms > self._call.not_after_ms:
            self._end(CallStatus.TOO_LATE, ErrorDecision.AGAIN, ErrorCode.NONE, now_ms)
            return
        node = self._node(now_ms)
        if isinstance(node, CoordinatorRefusal):
            self._refused(SinkStep.FIND, node.code, now_ms)
        elif node is not None:
            self._send(node, now_ms)

    def _node(self, now_ms: int) -> NodeKey | CoordinatorRefusal | None:
        client = self._runner.client
        target = self._call.target
        if isinstance(target, AnyNode):
            return client.usable_node(now_ms)
        if isinstance(target, CoordinatorOf):
            return self._runner.coordinators.node(target.kind, now_ms)
        if isinstance(target, LeaderOf):
            broker_id = client.metadata.leader(target.partition).broker_id
            self._reason = f"{target.partition} has no leader that can be reached"
        else:
            broker_id = target.broker_id
            self._reason = f"broker {broker_id} could not be reached"
        address = client.metadata.address(broker_id) if broker_id is not None else None
        if broker_id is None or address is None:
            client.refresh.request_update()
            return None
        return broker_id if client.connections.make_usable(broker_id, address, now_ms) else None

    def _send(self, node: NodeKey, now_ms: int) -> None:
        api = STEP_APIS[self._call.step]
        connections = self._runner.client.connections
        version = connections.version(node, api.request, at_most=api.version_max)
        if version is None or version < api.version_min:
            self._refused(self._call.step, ErrorCode.UNSUPPORTED_VERSION, now_ms)
            return
        self._is_sent = True
        self._sent_ms = now_ms
        connections.send(node, self._call.request, version, self._answered, now_ms=now_ms)

    def _answered(self, answer: Message | NoAnswer, now_ms: int) -> None:
        self._is_sent = False
        if self.is_over:
            return
        if isinstance(answer, NoAnswer):
            timed_out = answer.reason == "timed out"
            code: int = ErrorCode.REQUEST_TIMED_OUT if timed_out else ErrorCode.NETWORK_EXCEPTION
            reason = f"no answer ({answer.reason})"
        else:
            code = heaviest(self._call.step, codes_in(answer))
            reason = code_name(code)
        decision = decide(self._call.step, code)
        if decision in RESENT:
            self._again(decision, code, reason, now_ms)
            return
        self._reason = reason
        usable = None if isinstance(answer, NoAnswer) else answer
        self._end(CallStatus.ANSWERED, decision, code, now_ms, answer=usable)

    def _again(self, decision: ErrorDecision, code: int, reason: str, now_ms: int) -> None:
        client = self._runner.client
        client.trace.emit(CallRetried(step=self._call.step.name, because=reason))
        self._last = (decision, code, reason)
        self._reason = reason
        if decision == ErrorDecision.FIND_AGAIN and isinstance(self._call.target, CoordinatorOf):
            self._runner.coordinators.forget(self._call.target.kind)
        if decision == ErrorDecision.REFRESH:
            client.refresh.request_update()
        if decision == ErrorDecision.WAIT:
            self._retry_at_ms = now_ms + WAIT_MS
            return
        self._retry_at_ms = now_ms + self._runner.back_off.pause_ms(self._failures)
        self._failures += 1

    def _refused(self, step: SinkStep, code: int, now_ms: int) -> None:
        """It was not even sent: no other node would take it, either."""
        self._reason = f"{code_name(code)} ({step.value})"
        self._end(CallStatus.ANSWERED, ErrorDecision.STOP, code, now_ms)

    def _end(
        self,
        status: CallStatus,
        decision: ErrorDecision,
        code: int,
        now_ms: int,
        *,
        answer: Message | None = None,
    ) -> None:
        self.is_over = True
        reply = SinkReply(
            step=self._call.step,
            status=status,
            decision=decision,
            code=code,
            reason=self._reason,
            answer=answer,
            sent_ms=self._sent_ms,
            now_ms=now_ms,
        )
        self._then(reply)


class CoordinatorRefusal(NamedTuple):
    """The cluster refuses to name a coordinator, with this code."""

    code: int


@dataclass(slots=True)
class _Coordinator:
    """What is known about one of the two coordinators."""

    node_id: int | None = None
    address: Address | None = None
    is_sent: bool = False
    failures: int = 0
    retry_at_ms: int = 0
    doubt_at_ms: int | None = None
    refusal: CoordinatorRefusal | None = None


class Coordinators:
    """Finds the coordinators of one name, which is a group and a transactional id."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._known = {kind: _Coordinator() for kind in CoordinatorType}
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )

    def node(self, kind: CoordinatorType, now_ms: int) -> NodeKey | CoordinatorRefusal | None:
        """The node to send to now; None while it is being looked up."""
        known = self._known[kind]
        if known.refusal is not None:
            refusal, known.refusal = known.refusal, None
            return refusal
        if known.node_id is None or known.address is None:
            self._look_up(kind, known, now_ms)
            return None
        if self._client.connections.make_usable(known.node_id, known.address, now_ms):
            known.doubt_at_ms = None
            return known.node_id
        if known.doubt_at_ms is None:
            known.doubt_at_ms = now_ms + UNREACHABLE_MS
        elif now_ms >= known.doubt_at_ms:
            self.forget(kind)
            self._look_up(kind, known, now_ms)
        return None

    def forget(self, kind: CoordinatorType) -> None:
        """It may be elsewhere."""
        known = self._known[kind]
        known.node_id = known.address = known.doubt_at_ms = None

    def deadlines_ms(self) -> Iterable[int | None]:
        for known in self._known.values():
            yield known.doubt_at_ms
            if not known.is_sent and known.node_id is None:
                yield known.retry_at_ms

    def _look_up(self, kind: CoordinatorType, known: _Coordinator, now_ms: int) -> None:
        if known.is_sent or now_ms < known.retry_at_ms:
            return
        node = self._client.usable_node(now_ms)
        if node is None:
            return
        api = STEP_APIS[SinkStep.FIND]
        connections = self._client.connections
        version = connections.version(node, api.request, at_most=api.version_max)
        if version is None or version < api.version_min:
            known.refusal = CoordinatorRefusal(ErrorCode.UNSUPPORTED_VERSION)
            return
        known.is_sent = True
        request = FindCoordinatorRequest(key_type=kind.value, coordinator_keys=[self._name])

        def answered(answer: Message | NoAnswer, now_ms: int) -> None:
            self._answered(known, answer, now_ms)

        connections.send(node, request, version, answered, now_ms=now_ms)

    def _answered(self, known: _Coordinator, answer: Message | NoAnswer, now_ms: int) -> None:
        known.is_sent = False
        code: int = ErrorCode.NETWORK_EXCEPTION
        if isinstance(answer, FindCoordinatorResponse):
            code = heaviest(SinkStep.FIND, codes_in(answer))
        decision = decide(SinkStep.FIND, code)
        if decision in RESENT:
            known.retry_at_ms = now_ms + self._back_off.pause_ms(known.failures)
            known.failures += 1
        elif decision != ErrorDecision.GO_ON:
            known.refusal = CoordinatorRefusal(code)
        elif isinstance(answer, FindCoordinatorResponse) and answer.coordinators:
            found = answer.coordinators[0]
            known.node_id, known.address = found.node_id, Address(found.host, found.port)
            known.failures = 0
