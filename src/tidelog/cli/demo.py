"""`tidelog demo`: the crash story in the terminal, with a verdict and an honest exit code."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tidelog.worlds.runtime.crash_demo import Accounts, DemoFailed, run
from tidelog.worlds.runtime.demo_broker import DemoBroker

FOUND_SOMETHING = 1
COULD_NOT_RUN = 2
EVIDENCE_SHOWN_MAX = 10
_ALWAYS_SHOWN = ("lost", "duplicate", "reordered", "misplaced", "phantom")


def demo() -> int:
    """Start a broker, write, kill it, start it again, and account for every record."""
    console = Console(highlight=False, soft_wrap=True)
    started = time.monotonic()

    def say(text: str) -> None:
        console.print(f"[dim]{time.monotonic() - started:5.2f} s[/dim]  {text}")

    with tempfile.TemporaryDirectory(prefix="tidelog-demo-") as directory:
        broker = DemoBroker(Path(directory))
        try:
            accounts = run(broker, say)
        except DemoFailed as error:
            console.print(f"[red]the demo could not run:[/red] {error}")
            _show_log(console, broker.log_path)
            return COULD_NOT_RUN
    console.print(_table(accounts))
    if not accounts.is_clean:
        for anomaly in accounts.anomalies[:EVIDENCE_SHOWN_MAX]:
            console.print(f"  {anomaly.check}: {anomaly.evidence}", markup=False)
        console.print("[red]NOT what was promised: see above[/red]")
        return FOUND_SOMETHING
    console.print("[green]Every acknowledged order is there, once, in order.[/green]")
    return 0


def _table(accounts: Accounts) -> Table:
    table = Table(title="what became of every order", show_header=False)
    for name, value in (
        ("acknowledged before the kill", accounts.ok_before_kill),
        ("written, but the broker died before it said so", accounts.written_untold),
        ("... of these recognised as duplicates when sent again", accounts.recognised),
        *((f"told {word}", accounts.outcomes[word]) for word in ("ok", "refused", "unknown")),
        ("read back by a consumer", accounts.read),
    ):
        table.add_row(name, str(value))
    table.add_section()
    found = Counter(anomaly.check for anomaly in accounts.anomalies)
    for check in dict.fromkeys((*_ALWAYS_SHOWN, *found)):
        table.add_row(f"the judge found {check}", str(found[check]))
    return table


def _show_log(console: Console, path: Path) -> None:
    if path.exists():
        console.print("the end of the broker's log:")
        for line in path.read_text(errors="replace").splitlines()[-20:]:
            console.print(f"  {line}", markup=False)
