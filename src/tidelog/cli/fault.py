"""`tidelog fault`: break a local cluster, and mend it; what each verb does is in fault_run.py."""

from __future__ import annotations

from typing import Annotated

import typer

from tidelog.cli import fault_run
from tidelog.cli.cluster_ending import run
from tidelog.cli.up import DATA, Data

_HELP = """Break a local cluster on purpose, and mend it again.

TARGET is a node's id, `rack:a` (or just `a`), `leader:orders-0`, `follower:orders-0`,
`followers:orders-0`, `controller` or `all`. Where a link has two ends, an end may also be
`clients`, `client:NAME` (a client id) or `'*'` (everyone).

    tidelog fault kill leader:orders-0
    tidelog fault isolate 2 --for 3s
    tidelog fault cut 1 2 --one-way
    tidelog fault list
    tidelog fault heal

Each verb says what it did and how to undo it. Exit codes: 0 done, 1 could not be done, 2 bad usage.
"""

app = typer.Typer(name="fault", help=_HELP, no_args_is_help=True, rich_markup_mode="markdown")

Targets = Annotated[list[str], typer.Argument(metavar="TARGET…", help="Who is meant.")]
Target = Annotated[str, typer.Argument(metavar="TARGET", help="Who is meant.")]
End = Annotated[str, typer.Argument(metavar="TARGET", help="One end of the link.")]
OtherEnd = Annotated[str, typer.Argument(metavar="OTHER", help="The other end.")]
For = Annotated[
    str | None,
    typer.Option("--for", metavar="3s", help="Undo it after this time: 500ms, 3s, 2m."),
]
OneWay = Annotated[
    bool, typer.Option("--one-way", help="Only what TARGET sends to OTHER, not what it gets.")
]


@app.callback()
def _root() -> None:
    """Break a local cluster on purpose, and mend it again."""


_root.__doc__ = _HELP


@app.command()
def kill(targets: Targets, for_: For = None, data: Data = DATA) -> None:
    """Kill nodes with SIGKILL, as `kill -9` does. What is in the page cache survives.

    With `--for` the command waits and starts them again then; Ctrl-C does so at once.

        tidelog fault kill leader:orders-0 --for 3s
    """
    _exit("kill", lambda: fault_run.end_processes(data, "kill", targets, for_))


@app.command()
def stop(targets: Targets, for_: For = None, data: Data = DATA) -> None:
    """Stop nodes with SIGTERM: they hand over what they lead, and end.

    With `--for` the command waits and starts them again then; Ctrl-C does so at once.

        tidelog fault stop rack:a
    """
    _exit("stop", lambda: fault_run.end_processes(data, "stop", targets, for_))


@app.command()
def restart(targets: Targets, data: Data = DATA) -> None:
    """Start nodes that are down; stop nodes that run, and start them again.

    tidelog fault restart 2
    """
    _exit("restart", lambda: fault_run.restart(data, targets))


@app.command()
def pause(targets: Targets, for_: For = None, data: Data = DATA) -> None:
    """Pause nodes with SIGSTOP: they keep their connections and say nothing.

    With `--for` the command waits and lets them go on then; Ctrl-C does so at once.

        tidelog fault pause controller --for 10s
    """
    _exit("pause", lambda: fault_run.end_processes(data, "pause", targets, for_))


@app.command()
def resume(targets: Targets, data: Data = DATA) -> None:
    """Let paused nodes go on (SIGCONT).

    tidelog fault resume 2
    """
    _exit("resume", lambda: fault_run.resume(data, targets))


@app.command()
def isolate(
    targets: Targets,
    clients: Annotated[bool, typer.Option("--clients", help="From clients, too.")] = False,
    for_: For = None,
    data: Data = DATA,
) -> None:
    """Cut nodes off from all other nodes. Those that are named still reach each other.

    tidelog fault isolate rack:a --clients --for 10s
    """
    _exit("isolate", lambda: fault_run.isolate(data, targets, clients, for_))


@app.command()
def cut(
    target: End, other: OtherEnd, one_way: OneWay = False, for_: For = None, data: Data = DATA
) -> None:
    """Let nothing pass between two ends. It is silence, never a refusal; what waits flows later.

    tidelog fault cut 1 2
    tidelog fault cut rack:a rack:b --for 5s
    tidelog fault cut 1 clients --one-way
    """
    _exit("cut", lambda: fault_run.cut(data, target, other, one_way, for_))


@app.command()
def delay(
    target: End,
    other: OtherEnd,
    by: Annotated[str, typer.Option("--by", metavar="200ms", help="How much later.")],
    jitter: Annotated[
        str | None, typer.Option("--jitter", metavar="50ms", help="Up to so much more, by chance.")
    ] = None,
    one_way: OneWay = False,
    for_: For = None,
    data: Data = DATA,
) -> None:
    """Let everything between two ends arrive later, in order; each way by as much.

    tidelog fault delay 1 2 --by 200ms --jitter 50ms
    """
    _exit("delay", lambda: fault_run.delay(data, target, other, by, jitter, one_way, for_))


@app.command()
def drop(
    target: End,
    other: OtherEnd,
    chance: Annotated[
        float, typer.Option("--chance", metavar="0.1", help="Above 0, up to 1, for each frame.")
    ],
    one_way: OneWay = False,
    for_: For = None,
    data: Data = DATA,
) -> None:
    """Lose packets between two ends. TCP sends again, so the stream stalls for 200 ms each time.

    tidelog fault drop leader:orders-0 clients --chance 0.05
    """
    _exit("drop", lambda: fault_run.drop(data, target, other, chance, one_way, for_))


@app.command("hold-replica")
def hold_replica(
    target: Target,
    partition: Annotated[str, typer.Argument(metavar="TOPIC-0", help="The partition.")],
    for_: For = None,
    data: Data = DATA,
) -> None:
    """Give a follower nothing of one partition, and disturb nothing else.

    It leaves the in-sync set after `replica.lag.time.max.ms`.

        tidelog fault hold-replica follower:orders-0 orders-0
    """
    _exit("hold-replica", lambda: fault_run.hold_replica(data, target, partition, for_))


@app.command()
def error(
    target: Target,
    api: Annotated[str, typer.Argument(metavar="API", help="Produce, Fetch, Metadata…")],
    code: Annotated[str, typer.Argument(metavar="ERROR", help="Kafka's name of an error.")],
    nth: Annotated[int, typer.Option("--nth", min=1, help="The first request to be hit.")] = 1,
    times: Annotated[int, typer.Option("--times", min=1, help="How many in a row.")] = 1,
    source: Annotated[
        str, typer.Option("--from", metavar="WHOM", help="Whose requests are counted.")
    ] = "clients",
    for_: For = None,
    data: Data = DATA,
) -> None:
    """Answer the n-th request of a kind with an error, without handling it.

    tidelog fault error leader:orders-0 Produce NOT_LEADER_OR_FOLLOWER --nth 3
    """
    _exit("error", lambda: fault_run.error(data, target, api, code, (nth, times), source, for_))


@app.command()
def heal(
    fault_ids: Annotated[
        list[str] | None, typer.Argument(metavar="[FAULT…]", help="As `list` names them.")
    ] = None,
    data: Data = DATA,
) -> None:
    """Undo some faults, or all: links are whole, paused nodes go on, dead ones are started.

    tidelog fault heal f3
    tidelog fault heal
    """
    _exit("heal", lambda: fault_run.heal(data, fault_ids or []))


@app.command("list")
def list_(
    data: Data = DATA,
    as_json: Annotated[bool, typer.Option("--json", help="JSON for other programs.")] = False,
) -> None:
    """Show the active faults, with the ids that `heal` takes.

    `--json` is a list: id, what, text, nodes, until_ms (wall clock, or null), rules.
    """
    _exit("list", lambda: fault_run.show(data, as_json=as_json))


def _exit(name: str, action: fault_run.Action) -> None:
    raise typer.Exit(run(f"fault {name}", action))
