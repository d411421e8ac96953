"""`tidelog transaction abort`: end a hanging transaction in one partition."""

from __future__ import annotations

import json
from typing import Annotated, NamedTuple

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
from tidelog.cli.exit_codes import Misused, VerbFailed, refusal, verb
from tidelog.cli.topic.lookup import chosen_partitions, existing_topic


class ProducerOption(NamedTuple):
    """Whose transaction is meant; the coordinator epoch is that of its last marker."""

    producer_id: int
    producer_epoch: int
    coordinator_epoch: int | None


def abort(
    topic: Annotated[str, typer.Option("--topic", metavar="TOPIC")],
    partition: Annotated[int, typer.Option("--partition", min=0, metavar="N")],
    start_offset: Annotated[
        int | None, typer.Option(min=0, metavar="OFFSET", help="Where the transaction begins.")
    ] = None,
    producer_id: Annotated[
        int | None, typer.Option(min=0, metavar="ID", help="Instead of the start: all three.")
    ] = None,
    producer_epoch: Annotated[int | None, typer.Option(min=0, metavar="N")] = None,
    coordinator_epoch: Annotated[
        int | None, typer.Option(metavar="N", help="-1 before the producer's first marker.")
    ] = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Abort a hanging transaction in one partition: write the marker that its readers wait for.

    **What `tidelog transaction find-hanging` has found**, by its start offset:

        tidelog transaction abort --topic orders --partition 0 --start-offset 17

    **By its producer**, all three as find-hanging shows them:

        tidelog transaction abort --topic orders --partition 0 \\
          --producer-id 1000 --producer-epoch 3 --coordinator-epoch 5

    The leader is not told by the coordinator, but by you: a transaction that is *not* hanging would
    be torn, aborted here and committed in its other partitions. Look with `describe` first.

    `--json` is one document: topic, partition, producer_id, producer_epoch, coordinator_epoch. Exit
    code 1 if there is no such transaction, or the leader refuses (INVALID_PRODUCER_EPOCH,
    TRANSACTION_COORDINATOR_FENCED).
    """
    # Size: the options of one command and the help that teaches them.
    with verb("transaction abort"):
        producer = chosen_producer(start_offset, producer_id, producer_epoch, coordinator_epoch)
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.admin.transactions import abort_transaction
        from tidelog.client.shells.blocking_clients import Admin
        from tidelog.client.shells.transactions import open_transaction_at
        from tidelog.core.model.ids import TopicPartition

        count = len(existing_topic(at, topic).partitions)
        [index] = chosen_partitions(topic, count, [partition])
        name = TopicPartition(topic, index)
        with Admin(at.settings) as admin:
            if start_offset is not None:
                opened = open_transaction_at(admin, name, start_offset, timeout_s=at.timeout_s)
                if opened is None:
                    raise VerbFailed(f"no open transaction of {name} begins at {start_offset}")
                producer = ProducerOption(
                    opened.producer_id, opened.producer_epoch, opened.coordinator_epoch
                )
            assert producer is not None
            outcome = admin.ask(
                abort_transaction(name, **producer._asdict()), timeout_s=at.timeout_s
            )
        if not outcome.is_ok:
            because = f"the transaction of producer {producer.producer_id} in {name}"
            raise VerbFailed(refusal(outcome.error.name, None, because))
        if as_json:
            facts = {"topic": name.topic, "partition": name.index, **producer._asdict()}
            print(json.dumps(facts))
        else:
            print(f"aborted the transaction of producer {producer.producer_id} in {name}")


def chosen_producer(
    start_offset: int | None,
    producer_id: int | None,
    producer_epoch: int | None,
    coordinator_epoch: int | None,
) -> ProducerOption | None:
    """None: the one whose transaction begins at the start offset."""
    given = (producer_id, producer_epoch, coordinator_epoch)
    if start_offset is not None and given == (None, None, None):
        return None
    if (
        start_offset is not None
        or producer_id is None
        or producer_epoch is None
        or coordinator_epoch is None
    ):
        raise Misused(
            "say which: --start-offset, or --producer-id, --producer-epoch and --coordinator-epoch"
        )
    return ProducerOption(
        producer_id, producer_epoch, None if coordinator_epoch < 0 else coordinator_epoch
    )
