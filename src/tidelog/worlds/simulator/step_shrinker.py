"""Shrinking: the fewest and shortest steps with which a run still fails in the same way.

Delta debugging. Halves are left out first, then ever smaller parts, until no single step can be
left out; then each that lasts is made to last less long. A run is deterministic, so one try of each
choice is enough; the number of tries is bounded, and the best choice by then is the result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from tidelog.worlds.simulator.steps import ChosenStep, PlanStep

Fails = Callable[[Sequence[ChosenStep]], bool]
"""Whether a run with these steps alone fails in the same way."""

TRIES_MAX = 200


class Shrinker:
    """One search. `tries` counts runs."""

    def __init__(self, fails: Fails, *, tries_max: int = TRIES_MAX) -> None:
        self._fails = fails
        self._tries_max = tries_max
        self._known: dict[tuple[ChosenStep, ...], bool] = {}
        self.tries = 0

    def shrink(self, steps: Sequence[PlanStep]) -> list[ChosenStep]:
        """A small choice of the steps that still fails; all of them must fail."""
        chosen = self._fewest([ChosenStep(number) for number in range(len(steps))])
        return self._shortest(chosen, steps)

    def _fewest(self, chosen: list[ChosenStep]) -> list[ChosenStep]:
        if self._still_fails([]):
            return []
        parts = 2
        while len(chosen) >= 2:
            size = -(-len(chosen) // parts)
            pieces = [chosen[at : at + size] for at in range(0, len(chosen), size)]
            for index in range(len(pieces)):
                rest = [each for piece in pieces[:index] + pieces[index + 1 :] for each in piece]
                if rest and self._still_fails(rest):
                    chosen = rest
                    parts = max(parts - 1, 2)
                    break
            else:
                if size == 1:
                    break
                parts = min(parts * 2, len(chosen))
        return chosen

    def _shortest(self, chosen: list[ChosenStep], steps: Sequence[PlanStep]) -> list[ChosenStep]:
        for index, each in enumerate(chosen):
            lasting_ms = steps[each.number].for_ms
            for for_ms in (lasting_ms // 8, lasting_ms // 2):
                if 0 < for_ms < lasting_ms:
                    shorter = list(chosen)
                    shorter[index] = replace(each, for_ms=for_ms)
                    if self._still_fails(shorter):
                        chosen = shorter
                        break
        return chosen

    def _still_fails(self, chosen: Sequence[ChosenStep]) -> bool:
        key = tuple(chosen)
        if key not in self._known:
            if self.tries >= self._tries_max:
                return False
            self.tries += 1
            self._known[key] = self._fails(chosen)
        return self._known[key]
