"""`tidelog group describe`: committed offsets with lag, members, or only the state."""

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
from tidelog.cli.exit_codes import FAILED, Misused, complain, verb
from tidelog.cli.group.lookup import complain_of_silent, missing_group
from tidelog.cli.group.tables import group_json, headline, members_text, offsets_text


def describe(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="All groups if none is named.")
    ] = None,
    members: Annotated[
        bool, typer.Option("--members", help="Members and what each is assigned.")
    ] = False,
    state: Annotated[bool, typer.Option("--state", help="Only one line for each group.")] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Describe groups: for each partition the committed offset, the log end, the lag, the member.

    **How far is a group behind**, and who reads what:

        tidelog group describe mail

    **Who is in it**, and with which assignment:

        tidelog group describe mail --members

    **All groups**, a line each:

        tidelog group describe --state

    The log end is the high watermark, as far as consumers can read. A dash is nothing, a question
    mark what nobody could tell. Members of groups of the new protocol (KIP-848) are not shown, only
    their offsets and lag.

    `--json` is one document: groups, each with group, state, type, protocol_type, assignor,
    coordinator, lag, partitions (topic, partition, committed, log_end, lag, member_id, client_id,
    host) and members (member_id, group_instance_id, client_id, host, topics, partitions), null if
    they cannot be described. Exit code 1 if a named group does not exist.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("group describe"):
        if members and state:
            raise Misused("choose one of --members and --state")
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.shells.blocking_clients import Admin
        from tidelog.client.shells.groups import describe_groups, list_all_groups

        with Admin(at.settings) as admin:
            listed = list_all_groups(admin, timeout_s=at.timeout_s)
            wanted = list(dict.fromkeys(names or listed.groups))
            found = describe_groups(admin, listed, wanted, timeout_s=at.timeout_s)
        if as_json:
            print(json.dumps({"groups": [group_json(each) for each in found.values()]}))
        else:
            show = members_text if members else headline if state else offsets_text
            for group in found.values():
                print(show(group))
            if not wanted:
                print("no groups")
        missing = [name for name in wanted if name not in found]
        for name in missing:
            complain("group describe", missing_group(name))
        if complain_of_silent("group describe", listed) or missing:
            raise typer.Exit(FAILED)
