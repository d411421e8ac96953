"""One run: brokers up, warm, every scenario in turns, then the brokers alone, then the steps."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from bench.brokers import TIDELOG, Broker, running
from bench.rows import Figures
from bench.scenarios import (
    SCENARIOS,
    TRAFFIC,
    Effort,
    Scenario,
    memory_after_load,
    one_in_flight,
    start_up,
    unbatched,
)

START, STEPS = "start", "steps"
NAMES = (*SCENARIOS, START, STEPS)
STEP_CALLS = 20_000
Say = Callable[[str], None]


def say(text: str) -> None:
    """Progress goes to standard error; the table alone goes to standard output."""
    print(text, file=sys.stderr, flush=True)


def run(names: list[str], *, only: list[str], effort: Effort, tell: Say = say) -> Figures:
    """Measure the named brokers; `only` restricts the scenarios."""
    figures = Figures()
    under_load = [name for name in SCENARIOS if name in only]
    if under_load:
        with ExitStack() as stack:
            brokers = []
            for name in names:
                tell(f"starting {name}")
                brokers.append(stack.enter_context(running(name)))
            _under_load(brokers, under_load, figures, effort, tell)
    if START in only:
        _starts(names, figures, effort, tell)
    if STEPS in only and TIDELOG in names:
        from bench.steps import measure_steps

        tell("steps of a small Produce, in process")
        measure_steps(figures, calls=max(10, int(STEP_CALLS * effort.volume)))
    return figures


def _starts(names: list[str], figures: Figures, effort: Effort, tell: Say) -> None:
    with _bytecode_kept():
        if TIDELOG in names:
            start_up(TIDELOG, Figures(), effort, idle=False)  # compiles, as an installer does
        for repetition in range(effort.start_repetitions):
            for name in names:
                tell(f"start {repetition + 1}/{effort.start_repetitions}: {name}")
                start_up(name, figures, effort, idle=repetition < effort.idle_repetitions)


@contextmanager
def _bytecode_kept() -> Iterator[None]:
    """An installed broker has its bytecode; a checkout may be told not to write any."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory(prefix="tidelog-bench-") as directory:
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = directory
        try:
            yield
        finally:
            os.environ.clear()
            os.environ.update(before)


def _under_load(
    brokers: list[Broker], scenarios: list[str], figures: Figures, effort: Effort, tell: Say
) -> None:
    for broker in brokers:
        _warm_up(broker, effort, tell)
    for name in scenarios:
        for repetition in range(effort.repetitions):
            for broker in brokers:
                tell(f"{name} {repetition + 1}/{effort.repetitions}: {broker.name}")
                SCENARIOS[name](broker, figures, effort)
    for broker in brokers:
        memory_after_load(broker, figures)


def _warm_up(broker: Broker, effort: Effort, tell: Say) -> None:
    """Load of every kind. Python needs none of it; a virtual machine that compiles while it runs
    is half as fast in its first minute, and would be compared unfairly."""
    wanted_s = effort.warm_up_s if broker.name != TIDELOG else min(effort.warm_up_s, 5.0)
    ends_s = time.monotonic() + wanted_s
    tell(f"warming {broker.name} for {wanted_s:g} s")
    thrown_away = Figures()
    kinds: list[Scenario] = [one_in_flight, unbatched, *TRAFFIC]
    while time.monotonic() < ends_s:
        for kind in kinds:
            kind(broker, thrown_away, effort)
            if time.monotonic() >= ends_s:
                break
