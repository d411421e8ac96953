"""Where the sink's two coordinators are: asked of any broker, and again when in doubt."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.client.back_off import BackOff
from tidelog.client.client import Client
from tidelog.client.config import Address
from tidelog.client.connections import NodeKey
from tidelog.client.sink.codes import codes_in
from tidelog.client.sink.decisions import RESENT, Decision, decide, heaviest
from tidelog.client.sink.steps import SPOKEN, Kind, Step
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_10_find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidelog.core.wire.schema import Message

UNREACHABLE_MS = 500
"""A coordinator that cannot be reached for so long is looked up again."""


class Nobody(NamedTuple):
    """No coordinator will be told: the cluster refuses with this code."""

    code: int


@dataclass(slots=True)
class _Known:
    """What is known about the coordinator of one kind."""

    node_id: int | None = None
    address: Address | None = None
    is_asked: bool = False
    failures: int = 0
    retry_at_ms: int = 0
    doubt_at_ms: int | None = None
    refusal: Nobody | None = None


class Coordinators:
    """Finds the coordinators of one name, which is a group and a transactional id."""

    def __init__(self, client: Client, name: str) -> None:
        self._client = client
        self._name = name
        self._known = {kind: _Known() for kind in Kind}
        self._back_off = BackOff(
            first_ms=client.config.retry_backoff_ms,
            most_ms=client.config.retry_backoff_max_ms,
            random=client.random,
        )

    def node(self, kind: Kind, now_ms: int) -> NodeKey | Nobody | None:
        """Whom to ask now; None while that is being found out."""
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

    def forget(self, kind: Kind) -> None:
        """It may be elsewhere."""
        known = self._known[kind]
        known.node_id = known.address = known.doubt_at_ms = None

    def deadlines_ms(self) -> Iterable[int | None]:
        for known in self._known.values():
            yield known.doubt_at_ms
            if not known.is_asked and known.node_id is None:
                yield known.retry_at_ms

    def _look_up(self, kind: Kind, known: _Known, now_ms: int) -> None:
        if known.is_asked or now_ms < known.retry_at_ms:
            return
        node = self._client.usable_node(now_ms)
        if node is None:
            return
        spoken = SPOKEN[Step.FIND]
        connections = self._client.connections
        version = connections.version(node, spoken.request, at_most=spoken.version_max)
        if version is None or version < spoken.version_min:
            known.refusal = Nobody(ErrorCode.UNSUPPORTED_VERSION)
            return
        known.is_asked = True
        request = FindCoordinatorRequest(key_type=kind.value, coordinator_keys=[self._name])

        def answered(answer: Message | NoAnswer, now_ms: int) -> None:
            self._answered(known, answer, now_ms)

        connections.ask(node, request, version, answered, now_ms=now_ms)

    def _answered(self, known: _Known, answer: Message | NoAnswer, now_ms: int) -> None:
        known.is_asked = False
        code: int = ErrorCode.NETWORK_EXCEPTION
        if isinstance(answer, FindCoordinatorResponse):
            code = heaviest(Step.FIND, codes_in(answer))
        decision = decide(Step.FIND, code)
        if decision in RESENT:
            known.retry_at_ms = now_ms + self._back_off.pause_ms(known.failures)
            known.failures += 1
        elif decision != Decision.GO_ON:
            known.refusal = Nobody(code)
        elif isinstance(answer, FindCoordinatorResponse) and answer.coordinators:
            found = answer.coordinators[0]
            known.node_id, known.address = found.node_id, Address(found.host, found.port)
            known.failures = 0
