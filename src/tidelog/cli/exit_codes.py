"""How a verb ends: errors in one line with Kafka's names, exit code 0, 1 or 2, no tracebacks.

0 is success, 1 a failure or a refusal by the cluster, 2 a mistake in the usage. A reader that went
away (`| head`) and Ctrl-C end a verb quietly.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType
from typing import Any, Self

import typer

from tidelog.core.model.exceptions import TidelogError

FAILED = 1
MISUSED = 2
INTERRUPTED = 130


class VerbFailed(TidelogError):
    """The cluster said no, or nothing; the text is one line."""


class Misused(TidelogError):
    """The usage is wrong; the text says what would be right."""


def refusal(name: str, message: str | None, otherwise: str) -> str:
    """`TOPIC_ALREADY_EXISTS: what the broker says`, or what we know ourselves."""
    return f"{name}: {one_line(message) if message else otherwise}"


def one_line(text: str) -> str:
    return " ".join(text.split())


def complain(name: str, text: str) -> None:
    print(f"tidelog {name}: {one_line(text)}", file=sys.stderr)


@contextmanager
def verb(name: str) -> Iterator[None]:
    """Around everything that a verb does."""
    try:
        yield
        sys.stdout.flush()
    except Misused as error:
        complain(name, str(error))
        raise typer.Exit(MISUSED) from None
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except Exception as error:
        code = _code(error)
        if code is None:
            raise
        complain(name, str(error))
        raise typer.Exit(code) from None


def _code(error: Exception) -> int | None:
    """What a client may raise; None: our own mistake, which shall be seen as it is."""
    from tidelog.client.consumer.errors import ConsumerError
    from tidelog.client.settings import ConfigError
    from tidelog.client.shells.blocking_clients import RequestFailed, TimedOut

    if isinstance(error, ConfigError):
        return MISUSED
    foreseen = (VerbFailed, RequestFailed, TimedOut, ConsumerError)
    return FAILED if isinstance(error, foreseen) else None


class Stop:
    """Ctrl-C and SIGTERM while `with Stop() as stop`: the first asks, a second one insists.

    A machine must not be interrupted in the middle of its work, so the first signal only raises
    KeyboardInterrupt where somebody said that he is `waiting`.
    """

    def __init__(self) -> None:
        self.is_requested = False
        self._is_waiting = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """For input, or for time to pass."""
        self._is_waiting = True
        try:
            if self.is_requested:
                raise KeyboardInterrupt
            yield
        finally:
            self._is_waiting = False

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        was_requested, self.is_requested = self.is_requested, True
        if was_requested or self._is_waiting:
            raise KeyboardInterrupt
