"""Watching a cluster in a terminal: tables that change in place."""

from __future__ import annotations

import threading
import time

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from tidelog.cli.cluster.tables import (
    FAULT_HEADER,
    GROUP_HEADER,
    NODE_HEADER,
    TRANSACTION_HEADER,
    Row,
    fault_rows,
    group_rows,
    headline,
    node_rows,
    partition_header,
    partition_rows,
    summary,
    transaction_rows,
    wall_now_ms,
)
from tidelog.cluster import processes
from tidelog.cluster.cluster import Cluster
from tidelog.cluster.status import DOWN, FENCED, PAUSED, SILENT, UP, ClusterStatus

_STYLES = {UP: "green", FENCED: "yellow", SILENT: "yellow", PAUSED: "yellow", DOWN: "red"}
_LINES_BESIDE_PARTITIONS = 14
_PARTITIONS_MIN = 3


def watch_live(cluster: Cluster, *, every_s: float) -> None:
    """Until an interrupt."""
    pause = threading.Event()
    console = Console(highlight=False)
    with Live(console=console, auto_refresh=False, transient=False) as live:
        while True:
            processes.reap()
            live.update(
                picture(cluster.status(timeout_s=every_s), lines=console.size.height), refresh=True
            )
            pause.wait(every_s)


def picture(status: ClusterStatus, *, lines: int) -> Group:
    """As much as fits into the given number of lines."""
    used = _LINES_BESIDE_PARTITIONS + len(status.nodes) + len(status.faults)
    used += len(status.groups) + 1 if status.groups else 0
    used += len(status.transactions) + 1 if status.transactions else 0
    shown = status.partitions[: max(_PARTITIONS_MIN, lines - used)]
    parts: list[Table | Text] = [
        Text(f"{time.strftime('%H:%M:%S')}  {headline(status)}", style="bold"),
        _table(NODE_HEADER, node_rows(status)),
    ]
    if shown:
        parts.append(_table(partition_header(shown), partition_rows(shown)))
    parts.append(Text(summary(status, shown=len(shown)), style="dim"))
    if status.groups:
        parts.append(_table(GROUP_HEADER, group_rows(status.groups)))
    if status.transactions:
        rows = transaction_rows(status.transactions, wall_ms=wall_now_ms())
        parts.append(_table(TRANSACTION_HEADER, rows))
    if status.faults:
        parts.append(_table(FAULT_HEADER, fault_rows(status.faults, wall_ms=wall_now_ms())))
    return Group(*parts)


def _table(header: Row, rows: list[Row]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in header:
        table.add_column(name, no_wrap=name != "what it is")
    for row in rows:
        table.add_row(*(Text(cell, style=_STYLES.get(cell, "")) for cell in row))
    return table
