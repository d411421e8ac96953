"""`tidelog transaction find-hanging`: open transactions that no coordinator will end."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from tidelog.cli.client_options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT,
    Access,
    AsJson,
    Bootstrap,
    CommandConfig,
    Timeout,
    access,
)
from tidelog.cli.exit_codes import FAILED, Misused, VerbFailed, complain, verb
from tidelog.cli.topic.lookup import chosen_partitions, existing_topic
from tidelog.cli.transaction.tables import hanging_json, hanging_text

if TYPE_CHECKING:
    from tidelog.client.admin.topics import TopicDescription
    from tidelog.client.shells.blocking_clients import Admin
    from tidelog.core.model.ids import TopicPartition

_MINUTE_MS = 60_000
DEFAULT_TRANSACTION_TIMEOUT = 15
"""Kafka's `transaction.max.timeout.ms`, in minutes."""


def find_hanging_(
    topic: Annotated[str | None, typer.Option(metavar="TOPIC", help="Only this topic.")] = None,
    partition: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Only this partition of the topic.")
    ] = None,
    broker_id: Annotated[
        int | None,
        typer.Option(min=0, metavar="ID", help="The replicas of this broker, leading or not."),
    ] = None,
    max_transaction_timeout: Annotated[
        int,
        typer.Option(min=0, metavar="MINUTES", help="Ignore what was written to more recently."),
    ] = DEFAULT_TRANSACTION_TIMEOUT,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Find hanging transactions: open in a partition, and unknown to every coordinator.

    Readers with `isolation.level=read_committed` do not get past it, and a compacted
    topic is not cleaned behind it. Nothing ends it but `tidelog transaction abort`.

    **Everything that a broker holds**:

        tidelog transaction find-hanging --broker-id 1

    **One topic, or one of its partitions**, asked of the leaders:

        tidelog transaction find-hanging --topic orders

        tidelog transaction find-hanging --topic orders --partition 0

    `--max-transaction-timeout` should be the brokers' `transaction.max.timeout.ms`: what was
    written to more recently may still be on its way to the coordinator.

    `--json` is one document: transactions, each with topic, partition, producer_id, producer_epoch,
    coordinator_epoch (null before the producer's first marker), start_offset and last_timestamp_ms.
    Exit code 1 if a partition could not be searched.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("transaction find-hanging"):
        if topic is None and broker_id is None:
            raise Misused("say where: --topic TOPIC or --broker-id ID")
        if topic is None and partition is not None:
            raise Misused("--partition: say of which --topic")
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.shells.blocking_clients import Admin
        from tidelog.client.shells.transactions import find_hanging, wall_clock_ms

        with Admin(at.settings) as admin:
            partitions = _partitions(admin, at, topic, partition, broker_id)
            found = find_hanging(
                admin,
                partitions,
                transaction_timeout_ms=max_transaction_timeout * _MINUTE_MS,
                timeout_s=at.timeout_s,
            )
        if as_json:
            print(json.dumps({"transactions": [hanging_json(each) for each in found.transactions]}))
        else:
            print(hanging_text(found.transactions, wall_ms=wall_clock_ms()))
        for name, reason in found.refused.items():
            complain("transaction find-hanging", f"{name} was not searched: {reason}")
        if found.refused:
            raise typer.Exit(FAILED)


def _partitions(
    admin: Admin, at: Access, topic: str | None, index: int | None, broker_id: int | None
) -> dict[int, list[TopicPartition]]:
    """Which are searched, by the broker that is asked: the given one, or the leader of each."""
    from tidelog.client.admin.descriptions import describe_metadata

    if topic is None:
        topics = list(admin.ask(describe_metadata(), timeout_s=at.timeout_s).topics.values())
    else:
        topics = [existing_topic(at, topic)]
    return by_broker(topics, index=index, broker_id=broker_id)


def by_broker(
    topics: list[TopicDescription], *, index: int | None, broker_id: int | None
) -> dict[int, list[TopicPartition]]:
    """VerbFailed if a partition that is meant is not there, or has nobody to be asked."""
    from tidelog.core.model.ids import TopicPartition

    found: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        wanted = None if index is None else [index]
        for each in chosen_partitions(topic.name, len(topic.partitions), wanted):
            name, partition = TopicPartition(topic.name, each), topic.partitions[each]
            if broker_id is not None:
                if broker_id in partition.replicas:
                    found.setdefault(broker_id, []).append(name)
                elif index is not None:
                    raise VerbFailed(f"broker {broker_id} has no replica of {name}")
            elif partition.leader_id is None:
                raise VerbFailed(f"LEADER_NOT_AVAILABLE: {name} has no leader; name a --broker-id")
            else:
                found.setdefault(partition.leader_id, []).append(name)
    return found
