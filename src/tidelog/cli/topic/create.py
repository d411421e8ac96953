"""`tidelog topic create`: one topic, by counts or by an explicit placement."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from tidelog.cli.client_options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT,
    AsJson,
    Bootstrap,
    CommandConfig,
    Timeout,
    access,
    pairs_of,
)
from tidelog.cli.exit_codes import Misused, VerbFailed, refusal, verb
from tidelog.cli.option_values import replica_assignment
from tidelog.cli.topic.tables import topic_id_text


def create(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    partitions: Annotated[
        int | None, typer.Option(min=1, help="How many; the brokers' num.partitions if not given.")
    ] = None,
    replication_factor: Annotated[
        int | None,
        typer.Option(min=1, help="Copies of each; default.replication.factor if not given."),
    ] = None,
    assignment: Annotated[
        str | None,
        typer.Option(
            "--replica-assignment",
            metavar="1:2:3,2:3:1",
            help="The brokers of each partition, preferred leader first, in place of counts.",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="A setting of the topic; repeatable."),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Be content if it is there already.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Create a topic.

    **Three copies, two of them must have a record before it counts**:

        tidelog topic create orders --partitions 3 --replication-factor 3 \\
          --config min.insync.replicas=2

    **Placed by hand**: partition 0 on brokers 1, 2, 3 with 1 as its preferred leader:

        tidelog topic create orders --replica-assignment 1:2:3,2:3:1

    `--json` fields: topic, topic_id, partitions, replication_factor, created (false if
    `--if-not-exists` found it). Exit codes: 0 it is there, 1 refused or not reached, 2 usage.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("topic create"):
        placed = _placed(assignment, partitions, replication_factor)
        configs = pairs_of("--config", config)
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.admin.topics import create_topic
        from tidelog.client.shells.blocking_clients import Admin
        from tidelog.core.model.errors import ErrorCode

        question = create_topic(
            name,
            partitions=partitions,
            replication_factor=replication_factor,
            assignment=placed,
            configs=configs,
        )
        with Admin(at.settings) as admin:
            outcome = admin.ask(question, timeout_s=at.timeout_s)
        was_there = outcome.error == ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists
        if outcome.error != ErrorCode.NONE and not was_there:
            raise VerbFailed(refusal(outcome.error.name, outcome.message, f"topic {name}"))
        if as_json:
            document = {
                "topic": name,
                "topic_id": topic_id_text(outcome.topic_id),
                "partitions": outcome.partitions,
                "replication_factor": outcome.replication_factor,
                "created": not was_there,
            }
            print(json.dumps(document))
        elif was_there:
            print(f"topic {name} is there already")
        else:
            counts = (
                f"partitions {outcome.partitions}, replication factor {outcome.replication_factor}"
            )
            print(f"created topic {name}: {counts}")


def _placed(
    assignment: str | None, partitions: int | None, replication_factor: int | None
) -> dict[int, list[int]] | None:
    if assignment is None:
        return None
    if partitions is not None or replication_factor is not None:
        raise Misused(
            "--replica-assignment says it all: leave --partitions and --replication-factor out"
        )
    try:
        return replica_assignment(assignment)
    except ValueError as error:
        raise Misused(f"--replica-assignment: {error}") from None
