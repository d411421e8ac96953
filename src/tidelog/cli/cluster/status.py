"""`tidelog status`: a local cluster at this moment, dead or alive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.cluster.exit_codes import FAILED, data_option, run
from tidelog.cli.cluster.up import DATA, Data
from tidelog.cli.text_columns import columns

if TYPE_CHECKING:
    from tidelog.cluster.status import ClusterStatus


def status(
    data: Data = DATA,
    as_json: Annotated[bool, typer.Option("--json", help="JSON for other programs.")] = False,
) -> None:
    """Show a local cluster: nodes, leaders, replicas, offsets, groups, transactions, faults.

        tidelog status

    States of a node: `up`; `fenced`, it may not lead (yet); `silent`, it runs and does not answer;
    `paused`; `down`. Nobody is waited for longer than a moment.

    Transactions are shown while they are open, and last stable offsets while one of them is behind
    the high watermark: so much is kept from readers of committed records.

    `--json` is one document: cluster_id, data, bootstrap_servers, profile, controller,
    quorum_epoch, is_healthy, nodes, partitions_total, partitions (the first 200, internal topics
    last), groups (the first 20: group, state, type, members, lag), transactions (the first 20 that
    are open: transactional_id, coordinator, producer_id, state, start_ms, partitions), faults.
    Unknown is null.

    Exit codes: 0, or 1 if there is no cluster or no node of it runs.
    """
    raise typer.Exit(run("status", lambda: _status(data, as_json=as_json)))


def _status(data: Path, *, as_json: bool) -> int:
    from tidelog.cluster.cluster import Cluster
    from tidelog.cluster.status import status_as_json

    found = Cluster.attach(data).status()
    print(json.dumps(status_as_json(found)) if as_json else status_text(found, data))
    return FAILED if found.is_down else 0


def status_text(found: ClusterStatus, data: Path) -> str:
    """For people."""
    from tidelog.cli.cluster.tables import (
        FAULT_HEADER,
        GROUP_HEADER,
        NODE_HEADER,
        TRANSACTION_HEADER,
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

    parts = [f"{headline(found)}\ndata: {found.data}", columns(NODE_HEADER, node_rows(found))]
    if found.is_down:
        parts.append(f"resume it: tidelog up{data_option(data)}")
        return "\n\n".join(parts)
    if found.partitions:
        parts.append(columns(partition_header(found.partitions), partition_rows(found.partitions)))
    parts.append(summary(found, shown=len(found.partitions)))
    if found.groups:
        parts.append(columns(GROUP_HEADER, group_rows(found.groups)))
    if found.transactions:
        rows = transaction_rows(found.transactions, wall_ms=wall_now_ms())
        parts.append(columns(TRANSACTION_HEADER, rows))
    if found.faults:
        rows = fault_rows(found.faults, wall_ms=wall_now_ms())
        parts.append(columns(FAULT_HEADER, rows))
    return "\n\n".join(parts)
