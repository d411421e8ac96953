"""`tidelog produce`: lines or generated records into a topic, and an honest account of each."""

from __future__ import annotations

import json
import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, BinaryIO, TextIO

import typer

from tidelog.cli.client_options import (
    DEFAULT_BOOTSTRAP,
    DEFAULT_TIMEOUT,
    AsJson,
    Bootstrap,
    CommandConfig,
    Timeout,
    access,
    pairs_of,
)
from tidelog.cli.exit_codes import FAILED, Misused, complain, verb
from tidelog.cli.option_values import separator
from tidelog.cli.produce.run import Given, Pace, from_lines, generated
from tidelog.cli.topic.lookup import chosen_partitions, existing_topic
from tidelog.cli.topic.tables import topic_id_text

if TYPE_CHECKING:
    from tidelog.cli.produce.run import ProduceRun

CLIENT_ID = "tidelog-produce"


class Acks(StrEnum):
    """Who must have a record before it counts as written."""

    NONE = "0"
    LEADER = "1"
    ALL = "all"


class Codec(StrEnum):
    """How batches are packed."""

    NONE = "none"
    GZIP = "gzip"
    SNAPPY = "snappy"
    LZ4 = "lz4"
    ZSTD = "zstd"


File = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="Lines from here, not from stdin.")
]
Count = Annotated[
    int | None, typer.Option(min=1, help="Generate N records instead of reading lines.")
]
Size = Annotated[int, typer.Option(min=1, help="Bytes of each generated value.")]
Rate = Annotated[
    float | None, typer.Option(min=0.001, help="Maximum number of records per second.")
]
KeySeparator = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="What stands between key and value; \\t is a tab."),
]
NullMarker = Annotated[
    str | None, typer.Option(metavar="TEXT", help="A key or a value of this text is null.")
]
Partition = Annotated[
    int | None, typer.Option(min=0, help="Always this one; otherwise by the key's hash.")
]
Headers = Annotated[
    list[str] | None,
    typer.Option("--header", metavar="KEY=VALUE", help="For all records; repeatable."),
]
WantedAcks = Annotated[
    Acks | None, typer.Option("--acks", help="Who must have a record; all if not given.")
]
Idempotence = Annotated[
    bool | None,
    typer.Option("--idempotence/--no-idempotence", help="Number batches; on with acks=all."),
]
Compression = Annotated[Codec | None, typer.Option(help="How batches are packed.")]
LingerMs = Annotated[
    int | None, typer.Option(min=0, help="How long a batch waits for company; 5 if not given.")
]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--producer-property", metavar="KEY=VALUE", help="A setting by Kafka's name; repeatable."
    ),
]
JournalFile = Annotated[
    Path | None,
    typer.Option(
        "--journal", metavar="FILE", help="Write the outcome of each record to it, as JSON lines."
    ),
]
TransactionRecords = Annotated[
    int | None,
    typer.Option("--transaction", metavar="N", min=1, help="Every N records are one transaction."),
]
TransactionalId = Annotated[
    str | None,
    typer.Option(metavar="ID", help="The name of the transactions; one of its own if not given."),
]
Progress = Annotated[
    bool | None, typer.Option("--progress/--no-progress", help="A line each second on stderr.")
]


def produce(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    file: File = None,
    count: Count = None,
    size: Size = 100,
    rate: Rate = None,
    key_separator: KeySeparator = None,
    null_marker: NullMarker = None,
    partition: Partition = None,
    headers: Headers = None,
    acks: WantedAcks = None,
    idempotence: Idempotence = None,
    compression: Compression = None,
    linger_ms: LingerMs = None,
    properties: Properties = None,
    journal: JournalFile = None,
    transaction: TransactionRecords = None,
    transactional_id: TransactionalId = None,
    progress: Progress = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Write records, and account for each: ok, refused (not in the log), or unknown (perhaps).

    **Lines from standard input**, with a key before the colon:

        printf 'order-1:paid\\norder-2:sent\\n' | tidelog produce orders --key-separator :

    **Load**: 100,000 records of 1 KB, 5,000 per second, with a journal for an audit:

        tidelog produce orders --count 100000 --size 1000 --rate 5000 --journal acks.jsonl

    **Only the leader must have it**, so a failover may lose it:

        tidelog produce orders --acks 1 --file orders.txt

    **In transactions** of 100 records, each of which is read whole or not at all:

        tidelog produce orders --file orders.txt --transaction 100

    The summary goes to standard error. Ctrl-C stops reading, waits for what is on its way and
    reports; an open transaction is aborted. A second one does not wait. Topics are not created by
    writing to them. `--timeout` is for the first contact and for metadata; a record has
    delivery.timeout.ms (two minutes).

    `--json` is one document: topic, sent, ok, refused, unknown, errors (counts by Kafka's name),
    bytes, elapsed_ms, records_per_s, and with `--transaction` transactions (counts by their end).
    docs/command-line.md has the journal's format. Exit codes: 0 every record was acknowledged
    (with `--acks 0`: sent; in a transaction: committed), 1 not every one, 2 usage.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("produce"):
        if count is not None and (file or key_separator is not None or null_marker is not None):
            raise Misused("--count makes its own records: no --file, no --key-separator")
        if transactional_id is not None and transaction is None:
            raise Misused("--transactional-id needs --transaction N")
        run_name = secrets.token_hex(4)
        at = access(bootstrap, command_config, timeout)
        settings = at.with_settings(
            {"client.id": CLIENT_ID, "max.block.ms": str(at.timeout_ms)},
            given_settings(acks, idempotence, compression, linger_ms),
            transaction_settings(transaction, transactional_id, run_name),
            pairs_of("--producer-property", properties),
        )
        record_headers = [
            (key, each.encode()) for key, each in pairs_of("--header", headers).items()
        ]
        with ExitStack() as stack:
            records = _records(stack, file, key_separator, null_marker)
            if count is not None:
                records = generated(count, size_bytes=size, run=run_name)
            from tidelog.cli.produce.run import ProduceOptions, carry_out

            found = existing_topic(at, topic)
            if partition is not None:
                chosen_partitions(topic, len(found.partitions), [partition])
            order = ProduceOptions(
                topic=topic,
                topic_id=topic_id_text(found.topic_id),
                partition=partition,
                headers=record_headers,
                run_name=run_name,
                journal=None if journal is None else stack.enter_context(_writable(journal)),
                pace=Pace(rate),
                shows_progress=sys.stderr.isatty() if progress is None else progress,
                transaction_records=transaction,
            )
            run = carry_out(order, settings, records)
        _report(run, as_json=as_json)


def given_settings(
    acks: Acks | None, idempotence: bool | None, compression: Codec | None, linger_ms: int | None
) -> dict[str, str]:
    """Only what was given, so that a file of settings counts for the rest."""
    wanted = {
        "acks": acks,
        "enable.idempotence": None if idempotence is None else str(idempotence).lower(),
        "compression.type": compression,
        "linger.ms": linger_ms,
    }
    return {key: str(value) for key, value in wanted.items() if value is not None}


def transaction_settings(
    records: int | None, transactional_id: str | None, run_name: str
) -> dict[str, str]:
    """A producer with a name of its own fences nobody."""
    if records is None:
        return {}
    return {"transactional.id": transactional_id or f"{CLIENT_ID}-{run_name}"}


def _records(
    stack: ExitStack, file: Path | None, key_separator: str | None, null_marker: str | None
) -> Iterator[Given]:
    try:
        between = None if key_separator is None else separator(key_separator)
    except ValueError as error:
        raise Misused(f"--key-separator: {error}") from None
    lines: BinaryIO = sys.stdin.buffer
    if file is not None:
        try:
            lines = stack.enter_context(file.open("rb"))
        except OSError as error:
            raise Misused(f"--file: {error}") from None
    marker = None if null_marker is None else null_marker.encode()
    return from_lines(lines, separator=between, null_marker=marker)


def _writable(path: Path) -> TextIO:
    try:
        return path.open("a")
    except OSError as error:
        raise Misused(f"--journal: {error}") from None


def _report(run: ProduceRun, *, as_json: bool) -> None:
    """The account, to people and to programs; exit code 1 unless every record was acknowledged."""
    outcomes = run.outcomes
    for error, times in sorted(outcomes.errors.items()):
        complain("produce", f"{error} ({times} of {run.sent} records): {outcomes.reasons[error]}")
    if run.trouble is not None:
        complain("produce", run.trouble)
    print(run.summary_text(), file=sys.stderr)
    if as_json:
        print(json.dumps(run.summary()))
    if run.is_incomplete or outcomes.ok < run.sent:
        raise typer.Exit(FAILED)
