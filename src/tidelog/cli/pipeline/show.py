"""A running pipeline for people and programs: a table that changes, plain lines, or JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, Self

from tidelog.cli.pipeline.command import counted
from tidelog.spark.pipeline.job.accounts import BatchReport, SinkAccount
from tidelog.spark.pipeline.job.events import (
    BatchCompleted,
    PipelineEvent,
    PipelineStarted,
    PipelineStatus,
    PipelineWarning,
    RunOutcome,
    SinkStatus,
)

if TYPE_CHECKING:
    from rich.live import Live
    from rich.table import Table

    from tidelog.spark.pipeline import PipelinePlan

HEADER = (
    "sink",
    "state",
    "batch",
    "rows/s",
    "batch time",
    "read",
    "dead",
    "written",
    "behind",
    "open",
)
_PARTITIONS_SHOWN = 16


class Show(Protocol):
    """Whoever tells a person or a program."""

    def starting(self, plan: PipelinePlan) -> None: ...
    def tell(self, event: PipelineEvent) -> None: ...
    def ended(self, plan: PipelinePlan, outcome: RunOutcome) -> None: ...


class PlainShow:
    """A line for each thing that happens."""

    def starting(self, plan: PipelinePlan) -> None:
        self.say(f"{plan.name}: starting")

    def tell(self, event: PipelineEvent) -> None:
        match event:
            case PipelineWarning(text=text):
                print(f"tidelog pipeline run: {text}", file=sys.stderr, flush=True)
            case PipelineStarted():
                log = "" if event.log is None else f"; log: {event.log}"
                self.say(f"{event.name}: running, sinks {', '.join(event.sinks)}{log}")
            case BatchCompleted():
                self.say(batch_line(event.sink, event.report))

    def ended(self, plan: PipelinePlan, outcome: RunOutcome) -> None:
        self.say(f"{plan.name}: {outcome.ending.value}")
        for line in summary_lines(outcome):
            print(line, flush=True)

    def say(self, line: str) -> None:
        print(f"{time.strftime('%H:%M:%S')}  {line}", flush=True)


class LiveShow(PlainShow):
    """A table in the terminal that changes in place."""

    def __init__(self) -> None:
        self._live: Live | None = None

    def __enter__(self) -> Self:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(highlight=False), auto_refresh=False)
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.stop()

    def tell(self, event: PipelineEvent) -> None:
        assert self._live is not None
        match event:
            case PipelineStarted():
                super().tell(event)
                self._live.start()
            case PipelineStatus():
                self._live.update(picture(event), refresh=True)
            case PipelineWarning():
                super().tell(event)


class JsonShow:
    """An object in each line."""

    def starting(self, plan: PipelinePlan) -> None:
        pass

    def tell(self, event: PipelineEvent) -> None:
        match event:
            case PipelineWarning(text=text):
                self._print("warning", text=text)
            case PipelineStarted():
                self._print("started", name=event.name, sinks=event.sinks, log=event.log)
            case BatchCompleted():
                self._print("batch", sink=event.sink, **batch_document(event.report))

    def ended(self, plan: PipelinePlan, outcome: RunOutcome) -> None:
        self._print(
            "ended",
            name=plan.name,
            ending=outcome.ending.value,
            reason=outcome.reason,
            log=outcome.log,
            sinks={name: account_document(each) for name, each in outcome.accounts.items()},
        )

    def _print(self, event: str, **fields: Any) -> None:
        print(json.dumps({"event": event, **fields}), flush=True)


def batch_line(sink: str, report: BatchReport) -> str:
    """`revenue: batch 7, 1,200 read, 12 written, 0.8 s, 1,500 rows/s, behind 40 (orders-0: 40)`."""
    parts = [f"{sink}: batch {report.batch_id}", f"{_read(report):,} read"]
    dead = sum(each for _, each in report.sources.values())
    dropped = ((dead, "dead"), (report.duplicates, "duplicates"), (report.late, "late"))
    parts += [f"{number:,} {word}" for number, word in dropped if number]
    parts.append(f"{report.rows:,} written")
    parts.append(f"{report.duration_ms / 1_000:.1f} s")
    parts.append(f"{report.rows_per_s:,.0f} rows/s")
    if report.behind:
        parts.append(f"behind {behind_text(report.behind)}")
    return ", ".join(parts)


def _read(report: BatchReport) -> int:
    return sum(read for read, _ in report.sources.values()) or report.query_rows


def behind_text(behind: Mapping[str, int]) -> str:
    """The sum, and who makes it up."""
    lagging = sorted(((lag, name) for name, lag in behind.items() if lag), reverse=True)
    shown = ", ".join(f"{name}: {lag:,}" for lag, name in lagging[:3])
    more = ", …" if len(lagging) > 3 else ""
    total = f"{sum(behind.values()):,}"
    return f"{total} ({shown}{more})" if shown else total


def summary_lines(outcome: RunOutcome) -> list[str]:
    """What became of everything, as sums that can be checked by eye."""
    lines: list[str] = []
    for name, account in outcome.accounts.items():
        batches = counted(account.batches, "batch", "batches")
        lines.append(f"sink {name}: {counted(account.rows, 'row')} in {batches}")
        for source, read in account.sources.items():
            split = f"{read.parsed:,} parsed + {read.dead:,} dead"
            lines.append(f"  source {source}: read {read.read:,} = {split}")
        for view, rows in account.views.items():
            split = f"{account.duplicates:,} duplicates + {account.late:,} late"
            shown = split if len(account.views) == 1 else f"{rows.dropped:,} duplicates or late"
            lines.append(f"  {view}: {rows.arrived:,} = {rows.kept:,} kept + {shown}")
        if account.late_groups:
            groups = counted(account.late_groups, "group came", "groups came")
            lines.append(f"  {groups} after being written")
    return lines


def batch_document(report: BatchReport) -> dict[str, object]:
    """A batch for programs."""
    return {
        "batch_id": report.batch_id,
        "rows": report.rows,
        "rows_per_s": report.rows_per_s,
        "duration_ms": report.duration_ms,
        "duplicates": report.duplicates,
        "late": report.late,
        "late_groups": report.late_groups,
        "sources": {name: {"read": r, "dead": d} for name, (r, d) in report.sources.items()},
        "views": {name: {"arrived": a, "kept": k} for name, (a, k) in report.views.items()},
        "behind": dict(report.behind),
        "watermark": report.watermark,
    }


def account_document(account: SinkAccount) -> dict[str, object]:
    """A sink's whole run for programs."""
    return {
        "batches": account.batches,
        "rows": account.rows,
        "duplicates": account.duplicates,
        "late": account.late,
        "late_groups": account.late_groups,
        "sources": {
            name: {"read": each.read, "dead": each.dead} for name, each in account.sources.items()
        },
        "views": {
            name: {"arrived": each.arrived, "kept": each.kept}
            for name, each in account.views.items()
        },
    }


def picture(ticked: PipelineStatus) -> Table:
    """The table of this moment."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in HEADER:
        table.add_column(name, justify="left" if name in ("sink", "state") else "right")
    for sink in ticked.sinks:
        table.add_row(*sink_row(sink, is_stopping=ticked.is_stopping))
    partitions = sorted(worst_behind(ticked).items())
    shown = "  ".join(f"{name}: {lag:,}" for name, lag in partitions[:_PARTITIONS_SHOWN])
    more = len(partitions) - _PARTITIONS_SHOWN
    if partitions:
        table.caption = f"behind by partition  {shown}" + (f"  and {more} more" if more > 0 else "")
        table.caption_justify = "left"
    return table


def worst_behind(ticked: PipelineStatus) -> dict[str, int]:
    """Each sink reads for itself: a partition is as far behind as the slowest of them."""
    worst: dict[str, int] = {}
    for sink in ticked.sinks:
        if sink.account.last is not None:
            for name, lag in sink.account.last.behind.items():
                worst[name] = max(lag, worst.get(name, 0))
    return worst


def sink_row(sink: SinkStatus, *, is_stopping: bool) -> tuple[str, ...]:
    """One line of the table."""
    last = sink.account.last
    state = "ended" if not sink.is_active else "writing" if sink.is_busy else "waiting"
    if is_stopping and sink.is_active:
        state = "stopping"
    kind = "transaction " if sink.is_topic else ""
    return (
        sink.name,
        state,
        "-" if last is None else str(last.batch_id),
        "-" if last is None else f"{last.rows_per_s:,.0f}",
        "-" if last is None else f"{last.duration_ms / 1_000:.1f} s",
        f"{sink.account.read:,}",
        f"{sink.account.dead:,}",
        f"{sink.account.rows:,}",
        "-" if last is None or not last.behind else f"{sum(last.behind.values()):,}",
        "-" if sink.open_s is None else f"{kind}{sink.open_s:.1f} s",
    )
