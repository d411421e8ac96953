"""`tidelog group delete`: groups without members, with their committed offsets."""

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
from tidelog.cli.group.lookup import missing_group


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
    """Delete groups and what they have committed. Refused while a group has members.

        tidelog group delete mail audit

    **In a script**, whether they are there or not:

        tidelog group delete --if-exists mail

    `--json` is one line for each group: group, deleted, error (Kafka's name, or null). Exit code 1
    if any of them could not be deleted.
    """
    with verb("group delete"):
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.admin.groups import delete_group
        from tidelog.client.shells.blocking_clients import Admin
        from tidelog.core.model.errors import ErrorCode

        failures = 0
        with Admin(at.settings) as admin:
            for name in dict.fromkeys(names):
                outcome = admin.ask(delete_group(name), timeout_s=at.timeout_s)
                is_missing = outcome.error == ErrorCode.GROUP_ID_NOT_FOUND
                is_content = outcome.is_ok or (is_missing and if_exists)
                if as_json:
                    error = None if outcome.is_ok else outcome.error.name
                    print(json.dumps({"group": name, "deleted": outcome.is_ok, "error": error}))
                elif is_content:
                    print(f"{'deleted' if outcome.is_ok else 'there is no'} group {name}")
                if not is_content:
                    failures += 1
                    complain("group delete", _refused(name, outcome.error.name))
        if failures:
            raise typer.Exit(FAILED)


def _refused(name: str, error: str) -> str:
    if error == "GROUP_ID_NOT_FOUND":
        return missing_group(name)
    if error == "NON_EMPTY_GROUP":
        return refusal(error, None, f"group {name} has members; stop them first")
    return refusal(error, None, f"group {name}")
