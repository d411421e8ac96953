"""`tidelog topic delete`: topics by name, each with its own outcome."""

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
)
from tidelog.cli.exit_codes import FAILED, complain, refusal, verb


def delete(
    names: Annotated[list[str], typer.Argument(metavar="NAME…")],
    if_exists: Annotated[
        bool, typer.Option("--if-exists", help="Be content if one is not there.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Delete topics with all their records. There is no way back.

        tidelog topic delete orders payments

    **In a script**, whether they are there or not:

        tidelog topic delete --if-exists orders

    `--json` is one line for each topic: topic, deleted, error (Kafka's name, or null). Exit code 1
    if any of them could not be deleted.
    """
    with verb("topic delete"):
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.admin.topics import delete_topic
        from tidelog.client.shells.blocking_clients import Admin
        from tidelog.core.model.errors import ErrorCode

        failures = 0
        with Admin(at.settings) as admin:
            for name in dict.fromkeys(names):
                outcome = admin.ask(delete_topic(name), timeout_s=at.timeout_s)
                is_missing = outcome.error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if as_json:
                    error = None if outcome.is_ok else outcome.error.name
                    print(json.dumps({"topic": name, "deleted": outcome.is_ok, "error": error}))
                elif outcome.is_ok:
                    print(f"deleted topic {name}")
                elif is_missing and if_exists:
                    print(f"there is no topic {name}")
                if not outcome.is_ok and not (is_missing and if_exists):
                    failures += 1
                    otherwise = f"topic {name}"
                    message = None if is_missing else outcome.message
                    if is_missing:
                        otherwise = f"topic {name} does not exist"
                    complain("topic delete", refusal(outcome.error.name, message, otherwise))
        if failures:
            raise typer.Exit(FAILED)
