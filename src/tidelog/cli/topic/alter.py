"""`tidelog topic alter`: more partitions, other settings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

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

if TYPE_CHECKING:
    from tidelog.client.admin.question import AdminOutcome


def alter(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    partitions: Annotated[
        int | None,
        typer.Option(
            min=1, help="Total number of partitions after the change; it cannot be reduced."
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="Set a setting; repeatable."),
    ] = None,
    delete_config: Annotated[
        list[str] | None,
        typer.Option("--delete-config", metavar="KEY", help="Back to its default; repeatable."),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Alter a topic. Settings come first; if they are refused, no partition is added.

        tidelog topic alter orders --config retention.ms=86400000 --delete-config segment.bytes

    **Six partitions in all**; records with a key may then go elsewhere than before:

        tidelog topic alter orders --partitions 6

    `--json` fields: topic, partitions (null if not asked for), configs_set, configs_deleted.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("topic alter"):
        changes: dict[str, str | None] = {**pairs_of("--config", config)}
        deleted = list(dict.fromkeys(delete_config or ()))
        both = sorted(set(changes) & set(deleted))
        if both:
            raise Misused(f"{both[0]} is both set and deleted")
        if partitions is None and not changes and not deleted:
            raise Misused("say what: --partitions, --config or --delete-config")
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.admin.configs import ResourceKind, alter_configs
        from tidelog.client.admin.topics import create_partitions
        from tidelog.client.shells.blocking_clients import Admin

        with Admin(at.settings) as admin:
            if changes or deleted:
                wanted = {**changes, **dict.fromkeys(deleted)}
                question = alter_configs(ResourceKind.TOPIC, name, wanted)
                _check(admin.ask(question, timeout_s=at.timeout_s), name)
            if partitions is not None:
                question = create_partitions(name, total=partitions)
                _check(admin.ask(question, timeout_s=at.timeout_s), name)
        if as_json:
            document = {
                "topic": name,
                "partitions": partitions,
                "configs_set": changes,
                "configs_deleted": deleted,
            }
            print(json.dumps(document))
            return
        words = [f"{key}={value}" for key, value in changes.items()]
        words += [f"{key} back to its default" for key in deleted]
        words += [f"partitions {partitions}"] if partitions is not None else []
        print(f"altered topic {name}: {', '.join(words)}")


def _check(outcome: AdminOutcome, name: str) -> None:
    if not outcome.is_ok:
        from tidelog.core.model.errors import ErrorCode

        if outcome.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            raise VerbFailed(refusal(outcome.error.name, None, f"topic {name} does not exist"))
        raise VerbFailed(refusal(outcome.error.name, outcome.message, f"topic {name}"))
