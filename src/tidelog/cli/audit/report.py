"""An audit's report for people: what became of the records, and what is wrong with which."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tidelog.judge import anomalies

if TYPE_CHECKING:
    from tidelog.spark.audit.report import AuditReport

PIPE_COLUMNS = 160
"""As wide as a line may be where nobody says how wide the terminal is."""
UNJOURNALLED = "no journal"
CLASSES = {
    "kept": "acknowledged, and there",
    **{
        kind.name: kind.meaning
        for kind in (
            *(anomalies.LOST, anomalies.MISPLACED, anomalies.DUPLICATED),
            *(anomalies.REFUSED_BUT_PRESENT, anomalies.ABORTED_BUT_READ, anomalies.HIDDEN),
            *(anomalies.REORDERED, anomalies.DIVERGED, anomalies.CORRUPT),
            *(anomalies.PUBLISHED_TWICE, anomalies.UNPUBLISHED, anomalies.PUBLISHED_FROM_NOTHING),
        )
    },
    "expired": "acknowledged; the head of the log was deleted",
    "compacted": "acknowledged; a later record has its key",
    "uncommitted": "acknowledged by the leader alone; not committed yet",
    "untraceable": "acknowledged without an offset; the head of the log was deleted",
    "unknown, kept": "outcome unknown: it is there",
    "unknown, absent": "outcome unknown: it is not there",
    "refused": "refused, and not there",
    "aborted": "its transaction was aborted",
    "open": "its transaction is not decided",
    "identical": "equal to a record of a journal; perhaps of another writer",
    anomalies.UNEXPECTED.name: "no journal knows of it",
}
"""Every class of a record, and what it means, in the order of the table."""


def print_report(report: AuditReport, console: Console | None = None) -> None:
    """Summary, classes, findings, notes, verdict: in this order, the verdict last."""
    if console is None:
        console = Console(highlight=False)
        if not console.is_terminal:
            console = Console(highlight=False, width=PIPE_COLUMNS)
    console.print(_heading(report))
    console.print(_classes(report))
    if report.published is not None:
        console.print(_published(report))
    if report.first:
        console.print(_findings(report))
    for note in report.notes:
        console.print(Text(f"note: {note}", style="dim"))
    console.print(_verdict(report))


def _heading(report: AuditReport) -> str:
    facts = report.facts
    runs = _count(len(report.runs), "run")
    return (
        f"{facts.topic}: {report.outcomes:,} outcomes in {runs}; the topic holds "
        f"{report.held:,} records in {_count(len(facts.partitions), 'partition')}"
    )


def _classes(report: AuditReport) -> Table:
    """Outcomes by acks, in columns of their own."""
    kinds = sorted({acks for _, acks in report.counts if acks is not None})
    table = Table(box=None, pad_edge=False)
    table.add_column("class")
    for acks in kinds:
        table.add_column(f"acks={acks}", justify="right")
    table.add_column(UNJOURNALLED, justify="right")
    table.add_column("")
    by_class: dict[str, dict[str | None, int]] = {}
    for (verdict, sent_with), count in report.counts.items():
        by_class.setdefault(verdict, {})[sent_with] = count
    for name in [*CLASSES, *sorted(by_class.keys() - CLASSES.keys())]:
        counted = by_class.get(name)
        if counted is None and name not in ("kept", "lost"):
            continue
        cells = [_cell((counted or {}).get(acks)) for acks in [*kinds, None]]
        is_wrong = bool(counted) and name in report.findings
        table.add_row(name, *cells, CLASSES.get(name, ""), style="red" if is_wrong else None)
    return table


def _published(report: AuditReport) -> str:
    counts = report.published
    assert counts is not None
    text = f"published: {counts.records:,} records of {counts.sources:,} source records"
    if counts.waiting:
        text += f"; {counts.waiting:,} wait behind the newest published one"
    if counts.filtered:
        text += f"; {counts.filtered:,} were passed by, which is allowed"
    return text


def _findings(report: AuditReport) -> Table:
    total = sum(report.findings.values())
    shown = len(report.first)
    title = _count(total, "finding") + (f", the first {shown}" if shown < total else "")
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in ("finding", "offset", "epoch", "replicas", "record", "outcome", "evidence"):
        table.add_column(name, overflow="fold")
    for each in report.first:
        table.add_row(*_finding(report, each))
    return table


def _finding(report: AuditReport, each: dict[str, Any]) -> list[str]:
    offset = "" if each["offset"] is None else f" @ {each['offset']}"
    record = "-"
    if each["run"] is not None:
        record = f"{each['run']} number {each['number']} (line {each['line']})"
    outcome = "-"
    if each["answered"] is not None:
        outcome = each["answered"] + (f" at {each['answered_at']}" if each["answered_at"] else "")
    replicas = each["replicas"]
    return [
        each["finding"],
        f"{report.facts.topic}-{each['partition']}{offset}",
        _cell(each["leader_epoch"]),
        "-" if replicas is None else ",".join(map(str, replicas)) or "none",
        record + (f" key {_key(each['key'])}" if each["key"] is not None else ""),
        outcome,
        each["evidence"],
    ]


def _key(key: bytes) -> str:
    return json.dumps(bytes(key).decode(errors="replace"), ensure_ascii=False)


def _verdict(report: AuditReport) -> Text:
    if report.is_clean:
        return Text("no finding: nothing that was acknowledged is lost", style="bold green")
    words = ", ".join(f"{count:,} {name}" for name, count in sorted(report.findings.items()))
    return Text(f"findings: {words}", style="bold red")


def _cell(number: int | None) -> str:
    return "-" if number is None else f"{number:,}"


def _count(number: int, thing: str) -> str:
    return f"{number:,} {thing}" + ("" if number == 1 else "s")
