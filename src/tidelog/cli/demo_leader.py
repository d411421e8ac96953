"""`tidelog demo leader`: a leader's death on real brokers, a verdict, an honest exit code."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from tidelog.cluster.errors import ClusterError
from tidelog.lab.engines.processes import ProcessEngine
from tidelog.lab.report import Report, StoryStep
from tidelog.lab.stories.leader_demo import HASTY, a_leader_dies_with_records_of_its_own
from tidelog.lab.story import BOOK, play

FOUND_SOMETHING = 1
COULD_NOT_RUN = 2


def demo_leader() -> int:
    """Three brokers, a leader that dies with records of its own, and what became of each."""
    console = Console(highlight=False, soft_wrap=True)

    def on_step(step: StoryStep) -> None:
        console.print(f"[dim]{step.at_us / 1_000_000:5.2f} s[/dim]  {step.text}")

    try:
        with ProcessEngine(pace=1.0) as engine:
            story = BOOK[a_leader_dies_with_records_of_its_own.__name__]
            report = play(story, engine, on_step=on_step)
    except ClusterError as error:
        console.print(f"[red]the demo could not run:[/red] {error}")
        return COULD_NOT_RUN
    return show(console, report)


def show(console: Console, report: Report) -> int:
    """Everything that was found, and the exit code."""
    table = Table(title="what was found", title_justify="left", show_header=False)
    for finding in (each for step in report.steps for each in step.findings):
        found = finding.found if finding.holds else f"{finding.found}, not {finding.wanted}"
        table.add_row(finding.what, found, style=None if finding.holds else "red")
    console.print(table)
    if report.is_refuted:
        console.print(f"  {report.failure}", markup=False)
        console.print("[red]NOT what was promised: see above[/red]")
        return FOUND_SOMETHING
    if report.failure is not None:
        console.print(f"[red]the demo could not run:[/red] {report.failure}")
        return COULD_NOT_RUN
    console.print(
        f"[yellow]acks=1:   {len(HASTY)} acknowledged orders are LOST, and no producer was told: "
        f"{', '.join(HASTY)}.[/yellow]"
    )
    console.print("[green]acks=all: every acknowledged order is there, once. None is lost.[/green]")
    return 0
