"""`tidelog lab`: the stories about a cluster in trouble, listed and played in the terminal."""

from __future__ import annotations

import subprocess
import sys
from difflib import get_close_matches
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from tidelog.lab.report import Report
    from tidelog.lab.scenario_index import Scenario
    from tidelog.lab.story import Story

SHOWN, NOT_SHOWN, MISUSED = 0, 1, 2
NO_TEST_RAN = 5
"""How pytest ends when every test that was named is left out."""

app = typer.Typer(
    name="lab",
    help="Stories about a cluster in trouble: list them, play them.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)


class LabEngine(StrEnum):
    """Where a story is played."""

    SIMULATOR = "simulator"
    PROCESSES = "processes"


@app.command(name="list")
def list_stories(
    about: Annotated[
        str | None, typer.Argument(metavar="TEXT", help="Only those with this in name or ids.")
    ] = None,
) -> None:
    """All stories: name, the scenarios that it shows, and its first sentence."""
    for story in _book().values():
        ids = ", ".join(story.ids)
        if about is None or about.lower() in f"{story.name} {ids}".lower():
            print(f"{story.name}\n    {ids}\n    {story.title}")


@app.command()
def run(
    names: Annotated[list[str], typer.Argument(metavar="STORY...", help="Names or scenario ids.")],
    on: Annotated[LabEngine, typer.Option("--on", help="In which world.")] = LabEngine.SIMULATOR,
    pace: Annotated[
        float, typer.Option("--pace", min=0.1, help="On processes: run N times as fast.")
    ] = 3.0,
    data: Annotated[
        Path | None,
        typer.Option("--data", metavar="DIR", help="Keep the processes' data and logs in here."),
    ] = None,
) -> None:
    """Play stories, and print what was seen in each step.

    **One story**, in virtual time, in a moment:

        tidelog lab run d3_baseline

    **All that show a scenario**, on real broker processes:

        tidelog lab run D3-S5 --on processes

    A scenario that no story shows is shown by tests, which run in a checkout, or explained in
    the guide.

    Exit codes: 0 everything went as told, 1 something did not, 2 there is no such story.
    """
    code = SHOWN
    stories, others = _chosen(names)
    for scenario in others:
        code = max(code, _open(scenario))
    for story in stories:
        report = _played(story, on, pace, None if data is None else data / story.name)
        print("\n".join(report.lines()), flush=True)
        if report.failure is not None or report.cannot is not None:
            code = NOT_SHOWN
    raise typer.Exit(code)


def _played(story: Story, on: LabEngine, pace: float, data: Path | None) -> Report:
    from tidelog.lab.story import play

    if on is LabEngine.SIMULATOR:
        from tidelog.lab.engines.simulator import SimulatorEngine

        return play(story, SimulatorEngine())
    from tidelog.cluster.errors import ClusterError
    from tidelog.lab.engines.processes import ProcessEngine

    try:
        with ProcessEngine(pace=pace, data=data) as engine:
            return play(story, engine)
    except ClusterError as error:
        _refuse(str(error), NOT_SHOWN)


def _chosen(names: list[str]) -> tuple[list[Story], list[Scenario]]:
    """Stories by name or scenario; for the other scenarios whatever else shows them."""
    from tidelog.lab.scenario_index import find_scenarios, scenarios
    from tidelog.lab.story import stories_of

    book = _book()
    chosen: dict[str, Story] = {}
    others: list[Scenario] = []
    for name in names:
        found = [book[name]] if name in book else stories_of(name)
        chosen |= {story.name: story for story in found}
        if found:
            continue
        elsewhere = find_scenarios(name)
        if not elsewhere:
            near = get_close_matches(name, [*book, *scenarios()], n=1)
            hint = f"; did you mean {near[0]}?" if near else ", see tidelog lab list"
            _refuse(f"there is no story or scenario {name}{hint}", MISUSED)
        others += elsewhere
    return list(chosen.values()), others


def _open(scenario: Scenario) -> int:
    """Run the tests that show a scenario, or say where it is explained or what it waits for."""
    from tidelog.lab.scenario_index import checkout

    if scenario.waits_for is not None:
        print(f"{scenario.id} is not shown yet: it waits for {scenario.waits_for}")
        return NOT_SHOWN
    print(f"{scenario.id}: {scenario.what}", flush=True)
    if scenario.guide is not None:
        print(f"  explained in {scenario.guide}", flush=True)
    if not scenario.tests:
        return SHOWN
    root = checkout()
    if root is None or find_spec("pytest") is None:
        print("  shown by tests, which only a checkout has:", *scenario.tests, sep="\n    ")
        return SHOWN
    quietly = ["-q", "-W", "ignore", "-p", "no:cacheprovider"]
    done = subprocess.run([sys.executable, "-m", "pytest", *quietly, *scenario.tests], cwd=root)
    if done.returncode == NO_TEST_RAN:
        print(f"  only in long runs: ./dev test --all {' '.join(scenario.tests)}")
    return SHOWN if done.returncode in (0, NO_TEST_RAN) else NOT_SHOWN


def _refuse(reason: str, code: int) -> NoReturn:
    print(f"tidelog lab: {reason}", file=sys.stderr)
    raise typer.Exit(code)


def _book() -> dict[str, Story]:
    import tidelog.lab.stories  # noqa: F401 - opens the book
    from tidelog.lab.story import BOOK

    return BOOK
