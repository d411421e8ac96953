"""`tidelog topic reassign`: move the replicas of topics to other brokers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.client_options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT,
    Access,
    AsJson,
    Bootstrap,
    CommandConfig,
    Timeout,
    access,
)
from tidelog.cli.exit_codes import Misused, VerbFailed, refusal, verb
from tidelog.cli.option_values import broker_ids, partition_indexes
from tidelog.cli.reassignment import (
    Replicas,
    begin,
    moves_json,
    moves_of,
    ongoing_json,
    ongoing_text,
    plan_text,
    targets_of,
    watch,
)
from tidelog.cli.text_columns import cell

if TYPE_CHECKING:
    from tidelog.client.admin.topics import TopicDescription
    from tidelog.client.shells.blocking_clients import Admin
    from tidelog.core.model.ids import TopicPartition


def reassign(
    names: Annotated[list[str] | None, typer.Argument(metavar="[TOPIC]…")] = None,
    brokers: Annotated[
        str | None,
        typer.Option("--brokers", metavar="ID,ID,…", help="Where the replicas shall be."),
    ] = None,
    replication_factor: Annotated[
        int | None, typer.Option(min=1, help="Also change the number of replicas.")
    ] = None,
    partitions: Annotated[
        list[str] | None,
        typer.Option("--partitions", metavar="0,1", help="Only these partitions of one topic."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, move nothing.")
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Begin, and leave; --list shows how it goes.")
    ] = False,
    cancel: Annotated[
        bool, typer.Option("--cancel", help="Back to the replicas that they had.")
    ] = False,
    list_: Annotated[bool, typer.Option("--list", help="Show what is on the move.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Move topics to other brokers, while they are written and read.

    **The plan first**, then the same without `--dry-run`:

        tidelog topic reassign orders --brokers 4,5,6 --dry-run

        tidelog topic reassign orders --brokers 4,5,6

    New replicas copy everything, join the in-sync set, and only then do the old ones go. A replica
    that is on one of the brokers already stays; free places are filled evenly, over racks first.

    **What moves**, in the whole cluster, and **back** again:

        tidelog topic reassign --list

        tidelog topic reassign orders --cancel

    Watching can be left with Ctrl-C; the move goes on. A move ends only when every new replica is
    in sync: with a broker that is down it waits until that is back, or the move is cancelled.

    `--json`: a plan or a list is one line for each partition (topic, partition, replicas, and
    target, or adding and removing), progress is lines with moved and of.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("topic reassign"):
        ways = [brokers is not None or replication_factor is not None, cancel, list_]
        if sum(ways) != 1:
            raise Misused("say where: --brokers 4,5,6; or --cancel, or --list")
        if not names and not list_:
            raise Misused("say which topics")
        chosen = _indexes(names, partitions)
        wanted = _wanted(brokers)
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.shells.blocking_clients import Admin

        with Admin(at.settings) as admin:
            if list_ or cancel:
                _ongoing(admin, at, names, chosen, cancel=cancel, as_json=as_json)
                return
            current, moves, ongoing = _plan(
                admin, at, names or [], chosen, brokers=wanted, factor=replication_factor
            )
            if as_json:
                for line in moves_json(current, moves):
                    print(json.dumps(line))
            else:
                print(plan_text(current, moves) if moves else "nothing to move")
            if dry_run:
                return
            if moves:
                begin(admin, at, moves)
            watched = sorted({*moves, *ongoing})
            if watched and not no_wait:
                watch(admin, at, watched, as_json=as_json)


def _indexes(names: list[str] | None, texts: list[str] | None) -> list[int] | None:
    if texts is None:
        return None
    if names is None or len(names) != 1:
        raise Misused("--partitions needs exactly one topic")
    try:
        return partition_indexes(texts)
    except ValueError as error:
        raise Misused(f"--partitions: {error}") from None


def _plan(
    admin: Admin,
    at: Access,
    names: list[str],
    indexes: list[int] | None,
    *,
    brokers: list[int] | None,
    factor: int | None,
) -> tuple[dict[TopicPartition, Replicas], dict[TopicPartition, Replicas], set[TopicPartition]]:
    """The replicas of the chosen partitions, where they shall move, and what moves already."""
    from tidelog.client.admin.cluster import describe_cluster
    from tidelog.client.admin.descriptions import describe_metadata
    from tidelog.client.admin.reassignment_plan import TooFewBrokers, plan_reassignment

    cluster = admin.ask(describe_cluster(with_fenced=True), timeout_s=at.timeout_s)
    everything = admin.ask(describe_metadata(), timeout_s=at.timeout_s).topics
    for name in names:
        _check_exists(everything, name)
    targets, ongoing = targets_of(admin, at, everything.values())
    current = {name: each for name, each in targets.items() if name.topic in names}
    if indexes is not None:
        current = {name: each for name, each in current.items() if name.index in indexes}
        for index in indexes:
            if all(name.index != index for name in current):
                raise VerbFailed(f"UNKNOWN_TOPIC_OR_PARTITION: {names[0]} has no partition {index}")
    allowed = _allowed(brokers, sorted(cluster.brokers), sorted(cluster.fenced))
    racks = {each: cluster.brokers[each].rack for each in allowed}
    others = [replicas for name, replicas in targets.items() if name not in current]
    planned = plan_reassignment(current, brokers=racks, elsewhere=others, replication_factor=factor)
    if isinstance(planned, TooFewBrokers):
        raise VerbFailed(
            f"{planned.partition} needs {planned.replicas} brokers, "
            f"and these are {planned.brokers}: {cell(allowed)}"
        )
    moves = moves_of(current, planned)
    return current, moves, {name for name in ongoing if name in current}


def _wanted(brokers: str | None) -> list[int] | None:
    try:
        return None if brokers is None else broker_ids(brokers)
    except ValueError as error:
        raise Misused(f"--brokers: {error}") from None


def _allowed(wanted: list[int] | None, known: list[int], fenced: list[int]) -> list[int]:
    """The brokers that were named, or all that live."""
    if wanted is None:
        return [each for each in known if each not in fenced]
    for each in wanted:
        if each not in known:
            raise VerbFailed(f"broker {each} is not registered; there are {cell(known)}")
    return wanted


def _check_exists(topics: dict[str, TopicDescription], name: str) -> None:
    if name not in topics:
        hint = f"topic {name} does not exist"
        raise VerbFailed(refusal("UNKNOWN_TOPIC_OR_PARTITION", None, hint))


def _ongoing(
    admin: Admin,
    at: Access,
    names: list[str] | None,
    indexes: list[int] | None,
    *,
    cancel: bool,
    as_json: bool,
) -> None:
    from tidelog.client.admin.reassignments import list_reassignments

    ongoing = {
        name: each
        for name, each in admin.ask(list_reassignments(), timeout_s=at.timeout_s).items()
        if (not names or name.topic in names) and (indexes is None or name.index in indexes)
    }
    if cancel and ongoing:
        begin(admin, at, dict.fromkeys(ongoing))
    if as_json:
        for line in ongoing_json(ongoing):
            print(json.dumps({**line, **({"cancelled": True} if cancel else {})}))
    elif not ongoing:
        print("nothing is on the move")
    elif cancel:
        print(f"cancelled: {', '.join(str(name) for name in sorted(ongoing))}")
    else:
        print(ongoing_text(ongoing))
