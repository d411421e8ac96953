"""One run: brokers up, warm, every scenario in turns, then the brokers alone, then the steps."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack

from bench.brokers import TIDELOG, Broker, running
from bench.reports import bytecode_kept
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
    with bytecode_kept():
        if TIDELOG in names:
            start_up(TIDELOG, Figures(), effort, idle=False)  # compiles, as an installer does
        for repetition in range(effort.start_repetitions):
            for name in names:
                tell(f"start {repetition + 1}/{effort.start_repetitions}: {name}")
                start_up(name, figures, effort, idle=repetition < effort.idle_repetitions)


def _under_load(
    brokers: list[Broker], scenarios: list[str], figures: Figures, effort: Effort, tell: Say
) -> None:
    for broker in brokers:
        warm_up(broker, [one_in_flight, unbatched, *TRAFFIC], effort, tell)
    take_turns(brokers, {name: SCENARIOS[name] for name in scenarios}, figures, effort, tell)
    for broker in brokers:
        memory_after_load(broker, figures)


def take_turns(
    brokers: Sequence[Broker],
    scenarios: Mapping[str, Scenario],
    figures: Figures,
    effort: Effort,
    tell: Say,
) -> None:
    """Each repetition on one broker after the other."""
    for name, scenario in scenarios.items():
        for repetition in range(effort.repetitions):
            for broker in brokers:
                tell(f"{name} {repetition + 1}/{effort.repetitions}: {broker.name}")
                scenario(broker, figures, effort)


def warm_up(broker: Broker, kinds: Sequence[Scenario], effort: Effort, tell: Say) -> None:
    """Load of every kind. Python needs none of it; a virtual machine that compiles while it runs
    is half as fast in its first minute, and would be compared unfairly."""
    wanted_s = effort.warm_up_s if broker.name != TIDELOG else min(effort.warm_up_s, 5.0)
    ends_s = time.monotonic() + wanted_s
    tell(f"warming {broker.name} for {wanted_s:g} s")
    thrown_away = Figures()
    while time.monotonic() < ends_s:
        for kind in kinds:
            kind(broker, thrown_away, effort)
            if time.monotonic() >= ends_s:
                break
