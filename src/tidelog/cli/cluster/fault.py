"""`tidelog fault`: break a local cluster, and mend it. A command for each row of the fault table.

A command is one call of the verb of `tidelog.Cluster` that has its name, and words about it. The
commands that end faults (restart, resume, heal) and `list` are written out below.
"""

from __future__ import annotations

import inspect
import json
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidelog.cli.cluster.exit_codes import data_option, run
from tidelog.cli.cluster.up import DATA, Data
from tidelog.faults.fields import REQUIRED
from tidelog.faults.kinds import FAULTS, FaultKind, Parameter, Value

if TYPE_CHECKING:
    from tidelog.cluster.cluster import Cluster
    from tidelog.cluster.fault_injector import Fault

RETURN_TIMEOUT_S = 60.0
RETURN_DESPITE_FAULTS_TIMEOUT_S = 5.0

_HELP = """Break a local cluster on purpose, and mend it again.

TARGET is a node's id, `rack:a` (or just `a`), `leader:orders-0`, `follower:orders-0`,
`followers:orders-0`, `controller` or `all`. Where a link has two ends, an end may also be
`clients`, `client:NAME` (a client id) or `'*'` (everyone).

    tidelog fault kill leader:orders-0
    tidelog fault isolate 2 --for 3s
    tidelog fault cut 1 2 --one-way
    tidelog fault list
    tidelog fault heal

Each command says what it did and how to undo it. Exit codes: 0 done, 1 could not be done, 2 bad
usage.
"""

app = typer.Typer(name="fault", help=_HELP, no_args_is_help=True, rich_markup_mode="markdown")

Targets = Annotated[list[str], typer.Argument(metavar="TARGET…", help="The nodes that are meant.")]
For = Annotated[
    str | None,
    typer.Option("--for", metavar="3s", help="Undo it after this time: 500ms, 3s, 2m."),
]


@app.callback()
def _root() -> None:
    """Break a local cluster on purpose, and mend it again."""


_root.__doc__ = _HELP


# The faults of the table.


def _add_command(kind: FaultKind) -> None:
    def command(**given: Any) -> None:
        _exit(kind.name, lambda: _inject(kind, given))

    parameters = [
        inspect.Parameter(
            each.name,
            inspect.Parameter.KEYWORD_ONLY,
            annotation=_annotation(each),
            default=_cli_default(each),
        )
        for each in kind.parameters
    ]
    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters += [
        inspect.Parameter("for_", keyword, annotation=For, default=None),
        inspect.Parameter("data", keyword, annotation=Data, default=DATA),
    ]
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {each.name: each.annotation for each in parameters}
    examples = "\n".join(f"    {each}" for each in kind.examples)
    command.__doc__ = "\n\n".join(part for part in (kind.does, kind.more, examples) if part)
    app.command(kind.name)(command)


_TYPES: dict[Value, object] = {
    Value.TARGETS: list[str],
    Value.NUMBER: int,
    Value.CHANCE: float,
    Value.SWITCH: bool,
}


def _annotation(parameter: Parameter) -> object:
    kind = _TYPES.get(parameter.value, str)
    if parameter.option is None:
        return Annotated[kind, typer.Argument(metavar=parameter.metavar, help=parameter.help)]
    optional = kind if parameter.default is REQUIRED or kind is not str else str | None
    least = 1 if parameter.value is Value.NUMBER else None
    metavar = parameter.metavar or None
    if parameter.value is Value.NUMBER:
        metavar = None  # typer shows the range
    return Annotated[
        optional,
        typer.Option(parameter.option, metavar=metavar, help=parameter.help, min=least),
    ]


def _cli_default(parameter: Parameter) -> object:
    if parameter.default is REQUIRED:
        return inspect.Parameter.empty
    return None if parameter.value is Value.DURATION_MS else parameter.default


def _inject(kind: FaultKind, given: dict[str, Any]) -> int:
    data: Path = given["data"]
    for_ms = _milliseconds(given["for_"])
    positional, keywords = _arguments(kind, given)
    cluster = _running(data)
    verb: Callable[..., Fault] = getattr(cluster, kind.verb)
    if kind.is_of_process and for_ms is not None:
        return _for_a_while(cluster, lambda: verb(*positional), for_ms)
    if not kind.is_of_process:
        keywords["for_s"] = None if for_ms is None else for_ms / 1_000
    fault = verb(*positional, **keywords)
    what = " ".join(map(str, fault.nodes)) if kind.is_of_process else fault.id
    _print_fault(fault, f"tidelog fault {kind.undone_by} {what}{data_option(data)}")
    return 0


def _arguments(kind: FaultKind, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """What the Python verb takes: positional arguments, and keywords for options."""
    from tidelog.cluster.targets import parse_partition

    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    for each in kind.parameters:
        value = given[each.name]
        if each.value is Value.DURATION_MS:
            value = each.default if value is None else _milliseconds(value)
        if each.value is Value.TARGETS:
            positional += value
        elif each.value is Value.PARTITION:
            name = parse_partition(value)
            positional += [name.topic, name.partition]
        elif each.option is None:
            positional.append(value)
        else:
            keywords[each.name] = value
    return positional, keywords


def _for_a_while(cluster: Cluster, begin: Callable[[], Fault], for_ms: int) -> int:
    """A fault of processes with an end: wait for it here, and undo it."""
    from tidelog.cluster.durations import in_words

    with _signals() as interrupted:  # from before the fault on, so that none comes too early
        fault = begin()
        try:
            print(f"{fault.text} for {in_words(for_ms)}; Ctrl-C undoes it at once", flush=True)
            interrupted.wait(for_ms / 1_000)
        finally:
            fault.undo()
    _print_return(cluster, fault.nodes)
    return 0


for _kind in FAULTS:
    if _kind.has_command:
        _add_command(_kind)


# What ends faults, and the list of them.


@app.command()
def restart(targets: Targets, data: Data = DATA) -> None:
    """Start nodes that are down; stop nodes that run, and start them again.

    tidelog fault restart 2
    """
    _exit("restart", lambda: _restart(data, targets))


@app.command()
def resume(targets: Targets, data: Data = DATA) -> None:
    """Let paused nodes go on (SIGCONT).

    tidelog fault resume 2
    """
    _exit("resume", lambda: _resume(data, targets))


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
    _exit("heal", lambda: _heal(data, fault_ids or []))


@app.command("list")
def list_(
    data: Data = DATA,
    as_json: Annotated[bool, typer.Option("--json", help="JSON for other programs.")] = False,
) -> None:
    """Show the active faults, with the ids that `heal` takes.

    `--json` is a list: id, what, text, nodes, until_ms (wall clock, or null), rules.
    """
    _exit("list", lambda: _list(data, as_json=as_json))


def _restart(data: Path, targets: Sequence[str]) -> int:
    from tidelog.cluster.errors import ClusterError

    cluster = _attached(data)
    if not cluster.launcher.running() and cluster.launcher.launcher is None:
        raise ClusterError(f"the cluster is not running; start it: tidelog up{data_option(data)}")
    nodes = cluster.restart(*targets)
    print(f"restarted {_node_list(nodes)}", flush=True)
    _print_return(cluster, nodes)
    return 0


def _resume(data: Path, targets: Sequence[str]) -> int:
    print(f"resumed {_node_list(_running(data).resume(*targets))}")
    return 0


def _heal(data: Path, fault_ids: Sequence[str]) -> int:
    cluster = _attached(data)
    healed = [cluster.heal(each)[0] for each in fault_ids] if fault_ids else cluster.heal()
    if not healed:
        print("there are no faults")
    for fault in healed:
        print(f"undone: {fault.id} ({fault.text})", flush=True)
    started = [node for each in healed if each.what in ("kill", "stop") for node in each.nodes]
    if started:
        _print_return(cluster, tuple(dict.fromkeys(started)))
    return 0


def _list(data: Path, *, as_json: bool) -> int:
    from tidelog.cli.cluster.tables import FAULT_HEADER, fault_rows, wall_now_ms
    from tidelog.cli.text_columns import columns
    from tidelog.cluster.status import fault_as_json

    active = _attached(data).injector.registry.active()
    if as_json:
        print(json.dumps([fault_as_json(each) for each in active]))
    elif active:
        print(columns(FAULT_HEADER, fault_rows(active, wall_ms=wall_now_ms())))
    else:
        print("there are no faults")
    return 0


# Inside.


def _exit(name: str, action: Callable[[], int]) -> None:
    raise typer.Exit(run(f"fault {name}", action))


def _attached(data: Path) -> Cluster:
    from tidelog.cluster.cluster import Cluster

    return Cluster.attach(data)


def _running(data: Path) -> Cluster:
    from tidelog.cluster.errors import ClusterError

    cluster = _attached(data)
    if not cluster.launcher.running():
        raise ClusterError(
            f"no node of the cluster in {cluster.data} runs; "
            f"start it: tidelog up{data_option(data)}"
        )
    return cluster


def _print_fault(fault: Fault, undo: str) -> None:
    from tidelog.cluster.durations import in_words

    ends = ""
    if fault.until_ms is not None:
        left_ms = fault.until_ms - time.time_ns() // 1_000_000
        ends = f", for {in_words(round(max(0, left_ms), -2))}"
    print(f"{fault.id}: {fault.text}{ends}")
    print(f"undo: {undo}", flush=True)


def _print_return(cluster: Cluster, nodes: tuple[int, ...]) -> None:
    """Whether they take part again, which needs a quorum and a network."""
    from tidelog.cluster.errors import ClusterError
    from tidelog.cluster.members import id_list

    brokers = frozenset(nodes).intersection(cluster.broker_ids)
    is_disturbed = any(fault.active.rules for fault in cluster.faults())
    timeout_s = RETURN_DESPITE_FAULTS_TIMEOUT_S if is_disturbed else RETURN_TIMEOUT_S
    try:
        if not cluster.has_majority:
            raise ClusterError("there is no quorum")
        cluster.wait_until(
            lambda: brokers <= cluster.unfenced(), "their return", timeout_s=timeout_s
        )
    except ClusterError:
        print(f"{id_list(nodes)}: running, but not taking part yet; see `tidelog status`")
        return
    print(f"{id_list(nodes)}: back in the cluster")


def _node_list(nodes: tuple[int, ...]) -> str:
    from tidelog.cluster.members import id_list

    return f"{'node' if len(nodes) == 1 else 'nodes'} {id_list(nodes)}"


@contextmanager
def _signals() -> Iterator[threading.Event]:
    """Set by Ctrl-C and SIGTERM, which do nothing else meanwhile."""
    interrupted = threading.Event()

    def on_signal(number: int, frame: FrameType | None) -> None:
        interrupted.set()

    before = {
        number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield interrupted
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _milliseconds(text: str | None) -> int | None:
    from tidelog.cluster.durations import duration_ms

    return None if text is None else duration_ms(text)
