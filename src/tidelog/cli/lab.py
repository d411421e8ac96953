"""`tidelog lab`: the stories about a cluster in trouble, listed and played in the terminal."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

if TYPE_CHECKING:
    from tidelog.lab.report import Report
    from tidelog.lab.story import Story

SHOWN, NOT_SHOWN, MISUSED = 0, 1, 2

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

    Exit codes: 0 every story went as told, 1 one did not, 2 there is no such story.
    """
    code = SHOWN
    for story in _chosen(names):
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


def _chosen(names: list[str]) -> list[Story]:
    from tidelog.lab.story import stories_of

    book = _book()
    chosen: dict[str, Story] = {}
    for name in names:
        found = [book[name]] if name in book else stories_of(name)
        if not found:
            scenarios = [scenario for story in book.values() for scenario in story.ids]
            near = get_close_matches(name, [*book, *scenarios], n=1)
            hint = f"; did you mean {near[0]}?" if near else ", see tidelog lab list"
            _refuse(f"there is no story or scenario {name}{hint}", MISUSED)
        chosen |= {story.name: story for story in found}
    return list(chosen.values())


def _refuse(reason: str, code: int) -> NoReturn:
    print(f"tidelog lab: {reason}", file=sys.stderr)
    raise typer.Exit(code)


def _book() -> dict[str, Story]:
    import tidelog.lab.stories  # noqa: F401 - opens the book
    from tidelog.lab.story import BOOK

    return BOOK
