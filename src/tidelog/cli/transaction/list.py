"""`tidelog transaction list`: the transactional ids of all brokers, by state, age and name."""

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
from tidelog.cli.exit_codes import FAILED, VerbFailed, verb
from tidelog.cli.group.list import words
from tidelog.cli.transaction.tables import complain_of_silent, listed_json, listed_text


def list_(
    states: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE,…", help="Only these: Ongoing, Empty, …"),
    ] = None,
    producer_ids: Annotated[
        list[int] | None,
        typer.Option("--producer-id", metavar="ID", help="Only this producer; repeatable."),
    ] = None,
    duration_filter: Annotated[
        int | None,
        typer.Option(metavar="MS", help="Only those that run for longer, in milliseconds."),
    ] = None,
    transactional_id_pattern: Annotated[
        str | None, typer.Option(metavar="REGEX", help="Only ids that match this as a whole.")
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """List transactional ids; every broker is asked for those that it coordinates.

    **All of a cluster**:

        tidelog transaction list

    **Transactions that are open** for longer than a minute:

        tidelog transaction list --state Ongoing --duration-filter 60000

    **Those of one application**:

        tidelog transaction list --transactional-id-pattern 'mail-.*'

    States are Empty, Ongoing, PrepareCommit, PrepareAbort, CompleteCommit and CompleteAbort. The
    duration counts from the start of the latest transaction, also if it has ended, so that it makes
    sense together with `--state`. Brokers older than Kafka 3.8 have no duration filter, and older
    than 4.1 no pattern.

    `--json` is one document: transactions, each with transactional_id, coordinator, producer_id and
    state. Exit code 1 if a broker did not answer: the list may then lack some.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("transaction list"):
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.shells.blocking_clients import Admin
        from tidelog.client.shells.transactions import list_all_transactions

        has_duration = duration_filter is not None and duration_filter >= 0
        with Admin(at.settings) as admin:
            listed = list_all_transactions(
                admin,
                states=words(states),
                producer_ids=producer_ids or (),
                longer_than_ms=duration_filter if has_duration else None,
                id_pattern=transactional_id_pattern or None,
                timeout_s=at.timeout_s,
            )
        if listed.unknown_states:
            raise VerbFailed(f"no transaction has the state {', '.join(listed.unknown_states)}")
        if as_json:
            print(json.dumps({"transactions": listed_json(listed)}))
        else:
            print(listed_text(listed))
        if complain_of_silent("transaction list", listed):
            raise typer.Exit(FAILED)
