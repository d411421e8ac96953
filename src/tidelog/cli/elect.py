"""`tidelog elect`: let the controller elect leaders, the preferred ones or any that live."""

from __future__ import annotations

import json
from enum import StrEnum
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
)
from tidelog.cli.exit_codes import FAILED, Misused, complain, refusal, verb
from tidelog.cli.option_values import topic_partition

if TYPE_CHECKING:
    from tidelog.core.model.ids import TopicPartition


class ElectionKindOption(StrEnum):
    """Who may be elected."""

    PREFERRED = "preferred"
    UNCLEAN = "unclean"


def elect(
    kind: Annotated[ElectionKindOption, typer.Argument(metavar="preferred|unclean")],
    names: Annotated[list[str] | None, typer.Argument(metavar="[TOPIC-0]…")] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Every partition that can be helped.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Elect leaders.

    **Back to the preferred leaders** (the first replica of each), after a broker came back:

        tidelog elect preferred --all-topics

    **A leader at any price**, for a partition whose in-sync replicas are all gone; records that
    only they had, acknowledged ones among them, are lost:

        tidelog elect unclean orders-0

    `--json` is one line for each partition: topic, partition, elected, error (Kafka's name, or
    null), message. ELECTION_NOT_NEEDED is no failure: such a leader leads already.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("elect"):
        requested = _requested(names, all_topics=all_topics)
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.admin.cluster import PREFERRED, UNCLEAN, elect_leaders
        from tidelog.client.shells.blocking_clients import Admin
        from tidelog.core.model.errors import ErrorCode

        question = elect_leaders(
            PREFERRED if kind == ElectionKindOption.PREFERRED else UNCLEAN, requested
        )
        with Admin(at.settings) as admin:
            outcomes = admin.ask(question, timeout_s=at.timeout_s)
        failures = 0
        for name, outcome in sorted(outcomes.items()):
            is_needless = outcome.error == ErrorCode.ELECTION_NOT_NEEDED
            error = None if outcome.is_ok else outcome.error.name
            if as_json:
                line = {
                    "topic": name.topic,
                    "partition": name.index,
                    "elected": outcome.is_ok,
                    "error": error,
                    "message": outcome.message,
                }
                print(json.dumps(line))
            elif outcome.is_ok:
                print(f"{name}: elected")
            elif is_needless:
                print(f"{name}: no election needed")
            if error is not None and not is_needless:
                failures += 1
                complain("elect", f"{name}: {refusal(error, outcome.message, 'not elected')}")
        if not outcomes and not as_json:
            print("no election needed")
        if failures:
            raise typer.Exit(FAILED)


def _requested(names: list[str] | None, *, all_topics: bool) -> list[TopicPartition] | None:
    if all_topics == bool(names):
        raise Misused("say which partitions, such as orders-0, or --all-topics")
    try:
        return None if all_topics else [topic_partition(name) for name in names or ()]
    except ValueError as error:
        raise Misused(str(error)) from None
