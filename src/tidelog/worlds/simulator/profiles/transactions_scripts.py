"""Clients that follow a script: a generator that yields what to ask, and is given the answer.

So a producer of transactions reads from top to bottom, though the world goes on between two of its
lines. A client may be killed (its script ends where it is), or paused: it goes on later, as if
nothing had happened.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import NamedTuple, TypeVar

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_10_find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidelog.core.wire.schema import Message
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.profiles.transactions_context import TransactionsContext
from tidelog.worlds.simulator.profiles.wire_clients import KnownLeader, LeaderTracker

FIND_VERSION = 4
GROUP_KEY, TRANSACTION_KEY = 0, 1
RETRY_MS = 25


class Ask(NamedTuple):
    """Send a request, to any broker if none is named, and go on with its answer."""

    request: Message
    version: int
    broker: int | None
    timeout_ms: int


class Rest(NamedTuple):
    """Go on after a while."""

    for_ms: int


Step = Ask | Rest
T = TypeVar("T")
Script = Generator[Step, Reply | None, T]


class ScriptedClient(LeaderTracker):
    """One script at a time."""

    def __init__(self, context: TransactionsContext, name: str, *, request_timeout_ms: int) -> None:
        super().__init__(context, name)
        self.run = context
        self.request_timeout_ms = request_timeout_ms
        self.is_done = False
        self._script: Script[None] | None = None
        self._awake_us = 0
        self._coordinators: dict[tuple[int, str], int] = {}

    def start(self, script: Script[None]) -> None:
        assert self._script is None, "one script at a time"
        self._script = script
        self._later(self.random.randint(1, 40), self._resume(script, None))

    def kill(self) -> None:
        """The process is gone, and its connections with it."""
        script, self._script = self._script, None
        self.is_done = True
        if script is not None:
            script.close()
        self.disconnect()

    def pause(self, for_ms: int) -> None:
        self._awake_us = max(self._awake_us, self.run.world.now_us + for_ms * 1_000)

    def _resume(self, script: Script[None], value: Reply | None) -> Callable[[], None]:
        return lambda: self._go_on(script, value)

    def _go_on(self, script: Script[None], value: Reply | None) -> None:
        if script is not self._script:
            return  # killed meanwhile
        now_us = self.run.world.now_us
        if now_us < self._awake_us and not self.run.is_healed:
            self.run.world.after(self._awake_us - now_us, self._resume(script, value))
            return
        try:
            step = script.send(value)
        except StopIteration:
            self._script = None
            self.is_done = True
            return
        if isinstance(step, Rest):
            self._later(step.for_ms, self._resume(script, None))
        else:
            self.ask(
                step.request,
                step.version,
                lambda reply: self._go_on(script, reply),
                broker=step.broker,
                timeout_ms=step.timeout_ms,
            )

    def _later(self, delay_ms: int, act: Callable[[], None]) -> None:
        self.run.world.after(delay_ms * 1_000, act)

    # Parts of scripts.

    def asking(self, request: Message, version: int, broker: int | None = None) -> Script[Reply]:
        reply = yield Ask(request, version, broker, self.request_timeout_ms)
        assert reply is not None
        return reply

    def finding_leader(self, partition: str) -> Script[KnownLeader | None]:
        """Who leads it, as far as known; metadata are asked for if nobody is."""
        if partition not in self.known:
            self.refresh()
            yield Rest(RETRY_MS)
        return self.known.get(partition)

    def finding_coordinator(self, key_type: int, key: str) -> Script[int | None]:
        known = self._coordinators.get((key_type, key))
        if known is not None:
            return known
        request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
        reply = yield from self.asking(request, FIND_VERSION)
        if isinstance(reply, FindCoordinatorResponse):
            found = reply.coordinators[0]
            if found.error_code == ErrorCode.NONE:
                self._coordinators[key_type, key] = found.node_id
                return found.node_id
        yield Rest(RETRY_MS)
        return None

    def forget_coordinator(self, key_type: int, key: str) -> None:
        self._coordinators.pop((key_type, key), None)

    def asking_coordinator(
        self, key_type: int, key: str, request: Message, version: int
    ) -> Script[Reply]:
        """Fails unsent where no coordinator is found."""
        coordinator = yield from self.finding_coordinator(key_type, key)
        if coordinator is None:
            return CallFailed(reason="no coordinator", was_sent=False)
        reply = yield from self.asking(request, version, coordinator)
        if isinstance(reply, CallFailed):
            self.forget_coordinator(key_type, key)
        return reply
