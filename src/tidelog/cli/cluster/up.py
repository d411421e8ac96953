"""`tidelog up`: the words that people read; what it does is in up_run.py."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidelog.cli.cluster.exit_codes import DATA_VARIABLE, DEFAULT_DATA
from tidelog.cli.cluster.up_options import UpOptions, read_racks

Data = Annotated[
    Path,
    typer.Option(
        "--data", metavar="DIR", envvar=DATA_VARIABLE, help="The cluster's data directory."
    ),
]
DATA = Path(DEFAULT_DATA)


Brokers = Annotated[
    int | None, typer.Option("--brokers", metavar="N", help="How many brokers.  [default: 3]")
]
Racks = Annotated[
    str | None,
    typer.Option("--racks", metavar="A,B", help="Racks; brokers are dealt to them in turn."),
]
Controllers = Annotated[
    int | None,
    typer.Option(
        "--controllers",
        metavar="N",
        help="Run N dedicated controllers; otherwise the brokers vote.",
    ),
]
Profile = Annotated[
    str | None,
    typer.Option(
        "--profile",
        metavar="NAME",
        help="How soon a death is noticed: tidelog, kafka-4, documents, fast.  [default: tidelog]",
    ),
]
Port = Annotated[
    int | None,
    typer.Option(
        "--port",
        metavar="PORT",
        help="The first node's; the others follow. 0: free ones.  [default: 9092]",
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="A setting of every node; repeatable."),
]
Detach = Annotated[
    bool, typer.Option("--detach", "-d", help="Come back when it is ready; it goes on.")
]
Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Show each step of the start with its time.")
]


def up(
    brokers: Brokers = None,
    racks: Racks = None,
    controllers: Controllers = None,
    data: Data = DATA,
    profile: Profile = None,
    port: Port = None,
    settings: Settings = None,
    detach: Detach = False,
    verbose: Verbose = False,
) -> None:
    """Start a local cluster: real broker processes, ready when it says so.

    Shows bootstrap servers, then a live table of brokers, leaders, in-sync replicas, epochs and
    offsets until Ctrl-C stops everything. In a pipe it writes a line for each change instead.

    **Three brokers** on 127.0.0.1:9092 and the two ports after it, data in ./tidelog-data:

        tidelog up

    **Two racks**, either of which may die: a tiebreaker that only votes is added:

        tidelog up --brokers 4 --racks a,b

    **In the background**, until `tidelog down`:

        tidelog up --detach

    A second `up` on the same data resumes it. Who is in the cluster cannot be changed then;
    profile, port and settings can. Break it with `tidelog fault`, look at it with `tidelog status`.

    Exit codes: 0 stopped (or detached) as asked, 1 could not start, 2 bad usage.
    """
    from tidelog.cli.cluster.up_run import run_up

    named = (brokers, read_racks(racks), controllers, data, profile, port, tuple(settings or ()))
    raise typer.Exit(run_up(UpOptions(*named, detach=detach, verbose=verbose)))
