"""Faults come by chance or by script, the same for the same seed."""

from __future__ import annotations

from tidelog.worlds.simulator.schedule import Schedule, ScheduledFault
from tidelog.worlds.simulator.world import SimWorld


def strikes(seed: int) -> list[tuple[int, str]]:
    world = SimWorld(seed=seed)
    schedule = Schedule(world)
    struck: list[tuple[int, str]] = []
    menu = [
        ScheduledFault(name="often", act=lambda: struck.append((world.now_us, "often")), weight=9),
        ScheduledFault(
            name="seldom", act=lambda: struck.append((world.now_us, "seldom")), weight=1
        ),
    ]
    schedule.by_chance(menu, interval_ms_min=10, interval_ms_max=20)
    world.run_for(2_000)
    schedule.stop()
    world.run_for(2_000)
    return struck


def test_chance_follows_the_seed_the_weights_and_the_intervals() -> None:
    struck = strikes(1)
    names = [name for _, name in struck]

    assert struck == strikes(1)
    assert struck != strikes(2)
    assert 100 <= len(struck) <= 200
    assert names.count("often") > names.count("seldom") > 0


def test_nothing_strikes_after_the_stop() -> None:
    assert max(time_us for time_us, _ in strikes(1)) <= 2_000_000


def test_a_script_strikes_at_its_moments() -> None:
    world = SimWorld(seed=1)
    struck: list[int] = []
    fault = ScheduledFault(name="x", act=lambda: struck.append(world.now_ms))

    Schedule(world).script([(30, fault), (10, fault)])
    world.run_for(100)

    assert struck == [10, 30]
