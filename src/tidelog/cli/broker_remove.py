"""`tidelog broker remove`: move everything off a broker, dead or alive, and forget it."""

from __future__ import annotations

import json
import time
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
from tidelog.cli.exit_codes import VerbFailed, refusal, verb
from tidelog.cli.reassignment import (
    LOOK_AGAIN_S,
    Replicas,
    begin,
    moves_json,
    moves_of,
    plan_text,
    targets_of,
    watch,
)
from tidelog.cli.text_columns import cell

if TYPE_CHECKING:
    from tidelog.client.admin.cluster import ClusterDescription
    from tidelog.client.admin.topics import TopicDescription
    from tidelog.client.shells.blocking_clients import Admin
    from tidelog.core.model.ids import TopicPartition


def remove(
    broker_id: Annotated[int, typer.Argument(metavar="ID", min=0)],
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the plan, move nothing.")
    ] = False,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Begin to move, and leave; run it again later.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Remove a broker: move its replicas to the others, wait for them, and unregister it.

    **A dead broker** that will not come back, after its successor has joined:

        tidelog broker remove 3 --dry-run

        tidelog broker remove 3

    Its replicas go to the living brokers, evenly and over racks, while everything is written and
    read. It is refused if a topic has more replicas than brokers would be left, or if a partition
    has no living copy at all.

    **A living broker** is emptied in the same way; then stop it, and it is unregistered.

    It can be run again at any time: what has moved has moved. `tidelog topic reassign --cancel`
    turns back what has not.

    `--json`: one line for each partition that moves (topic, partition, replicas, target), then
    progress (moved, of), then broker and unregistered.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("broker remove"):
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.admin.cluster import describe_cluster
        from tidelog.client.admin.descriptions import describe_metadata
        from tidelog.client.shells.blocking_clients import Admin

        with Admin(at.settings) as admin:
            cluster = admin.ask(describe_cluster(with_fenced=True), timeout_s=at.timeout_s)
            topics = admin.ask(describe_metadata(), timeout_s=at.timeout_s).topics
            targets, ongoing = targets_of(admin, at, topics.values())
            current = {name: each for name, each in targets.items() if broker_id in each}
            leaving = {name for name, move in ongoing.items() if broker_id in move.removing}
            if broker_id not in cluster.brokers and not current and not leaving:
                known = cell(sorted(cluster.brokers))
                raise VerbFailed(f"broker {broker_id} is not registered; there are {known}")
            others = [each for name, each in targets.items() if name not in current]
            moves = _plan(cluster, topics, current, others, broker_id)
            if as_json:
                for line in moves_json(current, moves):
                    print(json.dumps(line))
            else:
                print(
                    plan_text(current, moves) if moves else f"broker {broker_id} holds no partition"
                )
            if dry_run:
                return
            if moves:
                begin(admin, at, moves)
            watched = sorted({*moves, *leaving})
            if watched and no_wait:
                return
            if watched:
                watch(admin, at, watched, as_json=as_json)
            if broker_id in cluster.brokers:
                _unregister(admin, at, broker_id, no_wait=no_wait, as_json=as_json)


def _plan(
    cluster: ClusterDescription,
    topics: dict[str, TopicDescription],
    current: dict[TopicPartition, Replicas],
    others: list[Replicas],
    broker_id: int,
) -> dict[TopicPartition, Replicas]:
    """VerbFailed in one line if it cannot be done."""
    from tidelog.client.admin.reassignment_plan import TooFewBrokers, plan_reassignment

    for name in sorted(current):
        if topics[name.topic].partitions[name.index].leader_id is None:
            raise VerbFailed(
                f"{name} has no leader, so nobody can copy it: bring one of its brokers "
                f"{current[name]} back, elect uncleanly, or delete the topic"
            )
    left = {each: node.rack for each, node in cluster.brokers.items() if each != broker_id}
    # A replica on another broker that is down stays: that one may come back.
    planned = plan_reassignment(
        current,
        brokers={each: rack for each, rack in left.items() if each not in cluster.fenced},
        keepers={each: rack for each, rack in left.items() if each in cluster.fenced},
        elsewhere=others,
    )
    if isinstance(planned, TooFewBrokers):
        raise VerbFailed(
            f"broker {broker_id} cannot be removed: {planned.partition} has {planned.replicas} "
            f"replicas, and only {planned.brokers} brokers would be left; start another one first"
        )
    return moves_of(current, planned)


def _unregister(admin: Admin, at: Access, broker_id: int, *, no_wait: bool, as_json: bool) -> None:
    """Only a broker that is down: a living one would register again."""
    from tidelog.client.admin.cluster import describe_cluster, unregister_broker

    is_announced = False
    while True:
        cluster = admin.ask(describe_cluster(with_fenced=True), timeout_s=at.timeout_s)
        if broker_id in cluster.fenced or broker_id not in cluster.brokers:
            break
        if not is_announced and not as_json:
            is_announced = True
            print(f"broker {broker_id} is empty and still runs: stop it now", flush=True)
        if no_wait:
            return
        time.sleep(LOOK_AGAIN_S)
    outcome = admin.ask(unregister_broker(broker_id), timeout_s=at.timeout_s)
    if not outcome.is_ok:
        raise VerbFailed(refusal(outcome.error.name, outcome.message, "not unregistered"))
    if as_json:
        print(json.dumps({"broker": broker_id, "unregistered": True}))
    else:
        print(f"broker {broker_id} is unregistered")
