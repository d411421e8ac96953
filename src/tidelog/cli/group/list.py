"""`tidelog group list`: the groups of all brokers, by state and type."""

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
from tidelog.cli.exit_codes import FAILED, verb
from tidelog.cli.group.lookup import complain_of_silent
from tidelog.cli.text_columns import columns


def list_(
    states: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE,…", help="Only these: Stable, Empty, Dead, …"),
    ] = None,
    types: Annotated[
        list[str] | None,
        typer.Option("--type", metavar="TYPE,…", help="Only these: classic, consumer, …"),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """List groups; every broker is asked for those that it coordinates.

    **All groups of a cluster**:

        tidelog group list

    **Groups without members**, only their names:

        tidelog group list --state Empty --json | jq -r '.groups[].group'

    `--json` is one document: groups, each with group, state, type, protocol_type and coordinator.
    Exit code 1 if a broker did not answer: the list may then lack groups.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("group list"):
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.shells.blocking_clients import Admin
        from tidelog.client.shells.groups import list_all_groups

        with Admin(at.settings) as admin:
            listed = list_all_groups(
                admin, states=words(states), types=words(types), timeout_s=at.timeout_s
            )
        facts = [
            {
                "group": each.group_id,
                "state": each.state,
                "type": each.group_type,
                "protocol_type": each.protocol_type,
                "coordinator": coordinator,
            }
            for each, coordinator in listed.groups.values()
        ]
        if as_json:
            print(json.dumps({"groups": facts}))
        elif facts:
            header = ("group", "state", "type", "protocol type", "coordinator")
            print(columns(header, [list(each.values()) for each in facts]))
        else:
            print("no groups")
        if complain_of_silent("group list", listed):
            raise typer.Exit(FAILED)


def words(texts: list[str] | None) -> list[str]:
    """`Stable,Empty` and `Dead`, each word once."""
    parts = [each.strip() for text in texts or () for each in text.split(",")]
    return list(dict.fromkeys(each for each in parts if each))
