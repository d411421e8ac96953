"""The world runs one event per step, in order of time and then of asking."""

from __future__ import annotations

import pytest

from tidelog.worlds.simulator.world import ConditionNotReached, SimWorld


def test_events_run_in_order_of_time_and_ties_in_order_of_asking() -> None:
    world = SimWorld(seed=1)
    ran: list[str] = []
    world.after(20, lambda: ran.append("late"))
    world.after(10, lambda: ran.append("first of a tie"))
    world.after(10, lambda: ran.append("second of a tie"))

    while world.step():
        pass

    assert ran == ["first of a tie", "second of a tie", "late"]
    assert world.now_us == 20
    assert world.steps == 3


def test_a_cancelled_event_does_not_happen_and_is_no_step() -> None:
    world = SimWorld(seed=1)
    ran: list[str] = []
    world.after(10, lambda: ran.append("cancelled")).cancel()

    assert not world.step()
    assert ran == []
    assert world.now_us == 0


def test_run_until_stops_at_the_step_that_fulfils_it() -> None:
    world = SimWorld(seed=1)
    seen: list[int] = []
    for time_us in (1_000, 2_000, 3_000):
        world.at(time_us, lambda: seen.append(world.now_ms))

    world.run_until(lambda: len(seen) == 2, within_ms=10)

    assert seen == [1, 2]


def test_run_until_gives_up_after_its_time_and_leaves_later_events_alone() -> None:
    world = SimWorld(seed=1)
    seen: list[int] = []
    world.at(11_000, lambda: seen.append(world.now_ms))

    with pytest.raises(ConditionNotReached):
        world.run_until(lambda: bool(seen), within_ms=10)

    assert seen == []


def test_run_for_lets_exactly_that_much_time_pass() -> None:
    world = SimWorld(seed=1)
    world.run_for(7)
    assert world.now_ms == 7


def test_streams_of_chance_depend_on_the_seed_and_the_name_alone() -> None:
    draws = [SimWorld(seed=5).random_for("disk").random() for _ in range(2)]

    assert draws[0] == draws[1]
    assert draws[0] != SimWorld(seed=5).random_for("network").random()
    assert draws[0] != SimWorld(seed=6).random_for("disk").random()


def test_nothing_can_be_asked_for_in_the_past() -> None:
    world = SimWorld(seed=1)
    world.run_for(1)
    with pytest.raises(AssertionError):
        world.at(10, lambda: None)
