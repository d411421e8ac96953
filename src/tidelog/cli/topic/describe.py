"""`tidelog topic describe`: who leads, who is in sync, and how far every replica is."""

from __future__ import annotations

import json
from dataclasses import replace
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
from tidelog.cli.exit_codes import FAILED, complain, refusal, verb
from tidelog.cli.topic.tables import survey_json, topic_text

if TYPE_CHECKING:
    from tidelog.client.shells.topic_descriptions import DescribedTopics


def describe(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="All topics if none is named.")
    ] = None,
    offsets: Annotated[
        bool,
        typer.Option("--offsets", help="Also the high watermark, and each replica's log end."),
    ] = False,
    under_replicated: Annotated[
        bool,
        typer.Option("--under-replicated", help="Only partitions with a replica out of sync."),
    ] = False,
    unavailable: Annotated[
        bool, typer.Option("--unavailable", help="Only partitions without a living leader.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Describe topics: leader, leader epoch, replicas, ISR, ELR, offline replicas, own settings.

    **One topic, with where each replica's log ends**; what lies behind the high watermark is on
    some replicas only, and is lost if they are:

        tidelog topic describe orders --offsets

    **What needs attention**, in the whole cluster:

        tidelog topic describe --under-replicated

    `elr` are the eligible leader replicas (out of sync, but with every committed record). A dash is
    nothing, a question mark what nobody could tell: that broker is down.

    `--json` is one document: topics (topic, topic_id, internal, replication_factor, configs,
    partitions) and racks by broker. A partition has partition, leader, leader_epoch, replicas, isr,
    elr, last_known_elr, offline, adding, removing; with `--offsets` also high_watermark, and
    log_end_offsets by broker. Unknown is null.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("topic describe"):
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.shells.blocking_clients import Admin
        from tidelog.client.shells.topic_descriptions import describe_topics

        with Admin(at.settings) as admin:
            found = describe_topics(
                admin, names or None, with_offsets=offsets, timeout_s=at.timeout_s
            )
        shown = filtered(found, under_replicated=under_replicated, unavailable=unavailable)
        if as_json:
            print(json.dumps(survey_json(shown, with_offsets=offsets)))
        else:
            for topic in shown.topics.values():
                print(topic_text(topic, found.racks, with_offsets=offsets))
            if not shown.topics and not found.refused:
                print("no such partitions" if under_replicated or unavailable else "no topics")
        for name, error in found.refused.items():
            complain("topic describe", refusal(error.name, None, f"topic {name} does not exist"))
        if found.refused:
            raise typer.Exit(FAILED)


def filtered(
    found: DescribedTopics, *, under_replicated: bool, unavailable: bool
) -> DescribedTopics:
    """Only partitions in such trouble, if any was asked for; topics without are left out."""
    if not under_replicated and not unavailable:
        return found
    topics = {
        name: replace(
            topic,
            partitions=tuple(
                each
                for each in topic.partitions
                if (under_replicated and each.is_under_replicated)
                or (unavailable and each.is_unavailable)
            ),
        )
        for name, topic in found.topics.items()
    }
    kept = {name: topic for name, topic in topics.items() if topic.partitions}
    return replace(found, topics=kept)
