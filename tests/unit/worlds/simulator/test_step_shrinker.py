"""A failing list of steps shrinks to the few that matter, and its text leads back to them."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tidelog.worlds.simulator.step_shrinker import Fails, Shrinker
from tidelog.worlds.simulator.steps import (
    BadChoice,
    ChosenStep,
    PlanStep,
    choose,
    from_text,
    to_text,
)

STEPS = [PlanStep(100 * number, "kill", (f"node-{number}",), 800) for number in range(40)]


def needs(*numbers: int, for_ms: int = 0) -> Fails:
    """Fails if all of these are there and the last one lasts long enough."""

    def fails(chosen: Sequence[ChosenStep]) -> bool:
        left = {step.at_ms // 100: step.for_ms for step in choose(STEPS, chosen)}
        return set(numbers) <= set(left) and left[numbers[-1]] >= for_ms

    return fails


@pytest.mark.parametrize("numbers", [(7,), (3, 31), (0, 20, 39), (5, 6, 7, 8)])
def test_only_the_steps_that_matter_are_left(numbers: tuple[int, ...]) -> None:
    chosen = Shrinker(needs(*numbers, for_ms=800)).shrink(STEPS)

    assert [each.number for each in chosen] == list(numbers)


def test_what_lasts_is_made_to_last_less_long_as_far_as_it_still_fails() -> None:
    assert Shrinker(needs(9, for_ms=100)).shrink(STEPS) == [ChosenStep(9, 100)]
    assert Shrinker(needs(9, for_ms=101)).shrink(STEPS) == [ChosenStep(9, 400)]
    assert Shrinker(needs(9, for_ms=401)).shrink(STEPS) == [ChosenStep(9)]


def test_a_run_that_fails_without_any_step_has_an_empty_story() -> None:
    assert Shrinker(lambda chosen: True).shrink(STEPS) == []


def test_the_number_of_tries_is_bounded() -> None:
    shrinker = Shrinker(needs(3, 31), tries_max=4)

    chosen = shrinker.shrink(STEPS)

    assert shrinker.tries == 4
    assert needs(3, 31)(chosen), "the best by then still fails"


def test_a_choice_is_told_as_text_and_read_again() -> None:
    chosen = [ChosenStep(3), ChosenStep(7, 200)]

    assert to_text(chosen) == "3,7/200"
    assert from_text("3,7/200", count=40) == chosen
    assert from_text(to_text([]), count=40) == []
    assert [str(step) for step in choose(STEPS, chosen)] == [
        "   300 ms  kill node-3 for 800 ms",
        "   700 ms  kill node-7 for 200 ms",
    ]


@pytest.mark.parametrize("text", ["40", "x", "3,", "3/x", "-1"])
def test_a_text_that_chooses_nothing_is_refused(text: str) -> None:
    with pytest.raises(BadChoice):
        from_text(text, count=40)
