"""Runs conversations of a sink over real sockets, one at a time."""

from __future__ import annotations

import threading
from typing import TypeVar

from tidelog.client.config import client_config
from tidelog.client.settings import Given
from tidelog.client.shells.closeable import Closeable
from tidelog.client.shells.loop import Loop
from tidelog.client.sink.call_runner import CallRunner
from tidelog.client.sink.conversation import Conversation, Steps
from tidelog.client.sink.errors import CommitUnknown, SinkError, SinkRefused
from tidelog.core.model.trace import Trace

T = TypeVar("T")
TIMEOUT_S = 60.0


class SinkRunner(Closeable):
    """The connections of one sink. Threads wait for each other."""

    def __init__(
        self,
        settings: Given,
        name: str,
        *,
        timeout_s: float = TIMEOUT_S,
        trace: Trace | None = None,
    ) -> None:
        """`name` is the sink's group and transactional id."""
        self._timeout_ms = int(timeout_s * 1_000)
        self._loop = Loop(client_config(settings), trace)
        self._calls = CallRunner(self._loop.client, name)
        self._broken: SinkError | None = None
        self.lock = threading.RLock()
        """For whoever must do several things in a row."""

    def now_ms(self) -> int:
        return self._loop.now_ms()

    def run(self, steps: Steps[T]) -> T:
        """Turn the loop until the conversation is over; its SinkError is raised."""
        with self.lock:
            if self._broken is not None:
                raise self._broken
            ends: list[T | SinkError] = []
            now_ms = self._loop.now_ms()
            try:
                Conversation(
                    self._calls,
                    steps,
                    ends.append,
                    deadline_ms=now_ms + self._timeout_ms,
                    now_ms=now_ms,
                )
                wait_ms: int | None = 0
                while not ends:
                    self._loop.turn(wait_ms)
                    wait_ms = None
            except BaseException:
                self._broken = CommitUnknown(
                    "the sink was interrupted while it asked: start the query again"
                )
                raise
        (end,) = ends
        if isinstance(end, SinkError):
            raise end
        return end

    def close(self) -> None:
        """Drop the connections. An open batch is aborted by the next run, or by its timeout."""
        with self.lock:
            self._broken = self._broken or SinkRefused("the sink's connections are closed")
            self._loop.close()
