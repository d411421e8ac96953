"""A conversation: a generator that yields the calls it wants to make, run to its end.

Each `yield` is a tuple of calls and pauses that are carried out at once, and gives back their
replies, in the same order. So the protocol reads from top to bottom, and a test can stop it at any
step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Generic, TypeVar

from tidelog.client.sink.call_runner import CallRunner
from tidelog.client.sink.decisions import ErrorDecision
from tidelog.client.sink.errors import SinkError
from tidelog.client.sink.replies import CallStatus, SinkReply, require_answer
from tidelog.client.sink.requests import Pause, SinkCall, SinkStep
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.schema import Message

T = TypeVar("T")
CallOrPause = SinkCall | Pause
Steps = Generator[tuple[CallOrPause, ...], list[SinkReply], T]
"""What a protocol function returns; `T` is its result."""


def call(one: SinkCall) -> Steps[SinkReply]:
    """One call alone: `reply = yield from call(...)`."""
    (reply,) = yield (one,)
    return reply


def require(one: SinkCall) -> Steps[Message]:
    """The answer to one call; raises a SinkError if it is not one to proceed with."""
    return require_answer((yield from call(one)))


def pause_until(until_ms: int) -> Steps[int]:
    """Wait; returns the time afterwards."""
    (reply,) = yield (Pause(until_ms),)
    return reply.now_ms


class Conversation(Generic[T]):
    """Runs one generator. `then(result)` gets what it returned, or its SinkError."""

    def __init__(
        self,
        runner: CallRunner,
        steps: Steps[T],
        then: Callable[[T | SinkError], None],
        *,
        deadline_ms: int,
        now_ms: int,
    ) -> None:
        self._runner = runner
        self._steps = steps
        self._then = then
        self._deadline_ms = deadline_ms
        self._replies: list[SinkReply | None] = []
        self._resume(None, now_ms)

    def _resume(self, replies: list[SinkReply] | None, now_ms: int) -> None:
        try:
            yielded = next(self._steps) if replies is None else self._steps.send(replies)
        except StopIteration as end:
            self._then(end.value)
            return
        except SinkError as error:
            self._then(error)
            return
        self._replies = [None] * len(yielded)
        for index, each in enumerate(yielded):
            self._start(index, each, now_ms)

    def _start(self, index: int, each: CallOrPause, now_ms: int) -> None:
        if isinstance(each, Pause):
            self._runner.pause(each, lambda now_ms: self._on_reply(index, _after_pause(now_ms)))
            return
        deadline_ms = self._deadline_ms
        if each.timeout_ms is not None:
            deadline_ms = now_ms + each.timeout_ms
        self._runner.start(
            each, lambda reply: self._on_reply(index, reply), deadline_ms=deadline_ms
        )

    def _on_reply(self, index: int, reply: SinkReply) -> None:
        assert self._replies[index] is None, "each call has one reply"
        self._replies[index] = reply
        replies = [each for each in self._replies if each is not None]
        if len(replies) == len(self._replies):
            self._resume(replies, reply.now_ms)


def _after_pause(now_ms: int) -> SinkReply:
    return SinkReply(
        step=SinkStep.VERSIONS,
        status=CallStatus.ANSWERED,
        decision=ErrorDecision.GO_ON,
        code=ErrorCode.NONE,
        reason="",
        answer=None,
        sent_ms=now_ms,
        now_ms=now_ms,
    )
