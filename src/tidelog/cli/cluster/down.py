"""`tidelog down`: stop a local cluster; its data stays."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from tidelog.cli.cluster.exit_codes import data_option, run
from tidelog.cli.cluster.up import DATA, Data


def down(
    data: Data = DATA,
    kill: Annotated[
        bool, typer.Option("--kill", help="kill -9 every node instead of stopping it.")
    ] = False,
) -> None:
    """Stop every node of a local cluster; `tidelog up` on the same data resumes it.

        tidelog down

    Also ends a `tidelog up` that shows its table elsewhere. A cluster that does not run is fine.

    Exit codes: 0, or 1 if there is no cluster here.
    """
    raise typer.Exit(run("down", lambda: _down(data, kill=kill)))


def _down(data: Path, *, kill: bool) -> int:
    from tidelog.cluster.cluster import Cluster

    started_s = time.monotonic()
    cluster = Cluster.attach(data)
    running = cluster.launcher.running()
    cluster.shut_down(kills=kill)
    if not running:
        print("the cluster was not running")
        return 0
    took_s = time.monotonic() - started_s
    verb = "killed" if kill else "stopped"
    print(f"{verb} {len(running)} nodes in {took_s:.1f} s; the data is in {cluster.data}")
    print(f"resume it: tidelog up{data_option(data)}")
    return 0
