"""Carries `tidelog pipeline run` out: signals, what is shown, and the exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any

from tidelog.cli.exit_codes import FAILED, INTERRUPTED, complain
from tidelog.cli.pipeline.show import JsonShow, LiveShow, PlainShow, Show
from tidelog.spark.pipeline import CheckedPlan
from tidelog.spark.pipeline.job.events import PipelineWarning, RunEnding
from tidelog.spark.pipeline.job.plan_runner import run_plan
from tidelog.spark.pipeline.job.stop_signal import StopSignal

_STDIN_BYTES = 4_096
_CODES = {
    RunEnding.FINISHED: 0,
    RunEnding.STOPPED: 0,
    RunEnding.ABANDONED: INTERRUPTED,
    RunEnding.FAILED: FAILED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineRunOptions:
    """What the command line asks for."""

    checked: CheckedPlan
    bootstrap: str | None
    master: str | None
    is_available_now: bool
    log: str | None
    as_json: bool
    stops_with_stdin: bool = False
    """For launchers: whoever holds the other end and dies, ends the run."""


def carry_out(order: PipelineRunOptions) -> int:
    """The exit code."""
    plan = order.checked.plan_or_raise()
    stop = StopSignal()
    if order.stops_with_stdin:
        threading.Thread(target=_watch_stdin, args=(stop,), name="stdin", daemon=True).start()
    with _show(order) as show, _signals(stop) as listen:
        for warning in order.checked.warnings:
            show.tell(PipelineWarning(text=warning.as_line(order.checked.file)))
        show.starting(plan)
        outcome = run_plan(
            plan,
            bootstrap=order.bootstrap,
            master=order.master,
            is_available_now=order.is_available_now,
            spark=None,
            on_event=show.tell,
            stop=stop,
            log=order.log,
            on_session=listen,
        )
    show.ended(plan, outcome)
    if outcome.reason is not None:
        log = "" if outcome.log is None else f"; the full log is {outcome.log}"
        complain("pipeline run", outcome.reason + log)
    return _CODES[outcome.ending]


def _watch_stdin(stop: StopSignal) -> None:
    """In a thread of its own: whatever kind of file it is, reading it ends some time."""
    with suppress(OSError):
        while os.read(0, _STDIN_BYTES):
            pass
    stop.request()


@contextmanager
def _show(order: PipelineRunOptions) -> Iterator[Show]:
    if order.as_json:
        yield JsonShow()
    elif sys.stdout.isatty():
        with LiveShow() as live:
            yield live
    else:
        yield PlainShow()


@contextmanager
def _signals(stop: StopSignal) -> Iterator[Any]:
    """Ctrl-C and SIGTERM ask, and insist; from the moment on that what is yielded is called.

    Spark sets a handler of its own when it starts, so ours comes after.
    """
    before: dict[int, Any] = {}

    def on_signal(number: int, frame: FrameType | None) -> None:
        stop.request_or_force()

    def listen() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            before[number] = signal.signal(number, on_signal)

    try:
        yield listen
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
