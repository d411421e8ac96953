"""`tidelog transaction describe`: state, producer and partitions, as the coordinator knows them."""

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
from tidelog.cli.transaction.tables import complain_of_silent, described_json, described_text


def describe(
    transactional_ids: Annotated[
        list[str] | None,
        typer.Option("--transactional-id", metavar="ID", help="Repeatable; all if none is named."),
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Describe transactional ids: producer, state, age, and the partitions of the transaction.

    **What does this application hold up?**

        tidelog transaction describe --transactional-id mail-1

    **All of them**:

        tidelog transaction describe

    Partitions are those that still wait for the end of the transaction: readers with
    `isolation.level=read_committed` do not get past it. The age counts from the start of the
    latest transaction, also if it has ended, by the clock of this machine.

    `--json` is one document: transactions, each with transactional_id, coordinator, producer_id,
    producer_epoch, state, timeout_ms, start_ms, running_ms and partitions (`orders-0`). Exit code 1
    if a named id does not exist.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("transaction describe"):
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.shells.blocking_clients import Admin
        from tidelog.client.shells.transactions import (
            describe_transactions,
            list_all_transactions,
            wall_clock_ms,
        )
        from tidelog.core.model.errors import ErrorCode

        is_failed = False
        with Admin(at.settings) as admin:
            wanted = transactional_ids
            if wanted is None:
                listed = list_all_transactions(admin, timeout_s=at.timeout_s)
                is_failed = complain_of_silent("transaction describe", listed)
                wanted = list(listed.transactions)
            answers = describe_transactions(admin, wanted, timeout_s=at.timeout_s)
        found = [each for each in answers.values() if each.description.error == ErrorCode.NONE]
        wall_ms = wall_clock_ms()
        if as_json:
            facts = [described_json(each, wall_ms=wall_ms) for each in found]
            print(json.dumps({"transactions": facts}))
        elif found or not wanted:
            print(described_text(found, wall_ms=wall_ms))
        for name, each in answers.items():
            if each.description.error != ErrorCode.NONE:
                is_failed = True
                complain("transaction describe", _refused(name, each.description.error.name))
        if is_failed:
            raise typer.Exit(FAILED)


def _refused(name: str, error: str) -> str:
    is_missing = error == "TRANSACTIONAL_ID_NOT_FOUND"
    return refusal(error, None, f"transactional id {name}{' does not exist' * is_missing}")
