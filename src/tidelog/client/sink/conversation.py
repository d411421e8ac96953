"""A conversation: a generator that yields what it wants to know, and is led to its end.

Each `yield` is a tuple of wishes that are carried out at once, and gives back what came of them, in
the same order. So the protocol is written as it is told, and a test can stop it at any step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Generic, TypeVar

from tidelog.client.sink.asking import Ask, Asker, Ending, Pause, Told
from tidelog.client.sink.decisions import Decision
from tidelog.client.sink.errors import SinkError
from tidelog.client.sink.steps import Step
from tidelog.core.model.errors import ErrorCode

T = TypeVar("T")
Wish = Ask | Pause
Steps = Generator[tuple[Wish, ...], list[Told], T]


def asked(ask: Ask) -> Steps[Told]:
    """One ask alone: `told = yield from asked(...)`."""
    (told,) = yield (ask,)
    return told


def paused(until_ms: int) -> Steps[int]:
    """The time afterwards."""
    (told,) = yield (Pause(until_ms),)
    return told.now_ms


class Conversation(Generic[T]):
    """Leads one generator. `then(result)` hears what it returned, or its SinkError."""

    def __init__(
        self,
        asker: Asker,
        steps: Steps[T],
        then: Callable[[T | SinkError], None],
        *,
        deadline_ms: int,
        now_ms: int,
    ) -> None:
        self._asker = asker
        self._steps = steps
        self._then = then
        self._deadline_ms = deadline_ms
        self._told: list[Told | None] = []
        self._go_on(None, now_ms)

    def _go_on(self, told: list[Told] | None, now_ms: int) -> None:
        try:
            wishes = next(self._steps) if told is None else self._steps.send(told)
        except StopIteration as end:
            self._then(end.value)
            return
        except SinkError as error:
            self._then(error)
            return
        self._told = [None] * len(wishes)
        for place, wish in enumerate(wishes):
            self._wish(place, wish, now_ms)

    def _wish(self, place: int, wish: Wish, now_ms: int) -> None:
        if isinstance(wish, Pause):
            self._asker.pause(wish, lambda now_ms: self._hear(place, _woken(now_ms)))
            return
        deadline_ms = self._deadline_ms
        if wish.patience_ms is not None:
            deadline_ms = now_ms + wish.patience_ms
        self._asker.ask(wish, lambda told: self._hear(place, told), deadline_ms=deadline_ms)

    def _hear(self, place: int, told: Told) -> None:
        assert self._told[place] is None, "each wish is heard of once"
        self._told[place] = told
        heard = [each for each in self._told if each is not None]
        if len(heard) == len(self._told):
            self._go_on(heard, told.now_ms)


def _woken(now_ms: int) -> Told:
    return Told(
        step=Step.VERSIONS,
        ending=Ending.ANSWERED,
        decision=Decision.GO_ON,
        code=ErrorCode.NONE,
        reason="",
        answer=None,
        asked_ms=now_ms,
        now_ms=now_ms,
    )
