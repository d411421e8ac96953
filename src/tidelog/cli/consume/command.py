"""`tidelog consume`: records of a topic, by partition, from an offset or a time."""

from __future__ import annotations

from enum import StrEnum
from functools import partial
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
    pairs_of,
)
from tidelog.cli.consume.plan import as_json_line, as_line, print_fields
from tidelog.cli.exit_codes import Misused, verb
from tidelog.cli.option_values import EARLIEST, LATEST, Start, moment_ms, partition_indexes, start
from tidelog.cli.topic.lookup import chosen_partitions, existing_topic

CLIENT_ID = "tidelog-consume"


class Isolation(StrEnum):
    """Whether records of open and aborted transactions are shown."""

    READ_UNCOMMITTED = "read_uncommitted"
    READ_COMMITTED = "read_committed"


class Protocol(StrEnum):
    """Who assigns partitions: a member of the group, or its coordinator (KIP-848)."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


Partitions = Annotated[
    list[str] | None,
    typer.Option("--partition", metavar="0,1", help="Only these; all if not given."),
]
FromBeginning = Annotated[
    bool, typer.Option("--from-beginning", help="From the first record on, which is the default.")
]
Offset = Annotated[
    str | None,
    typer.Option(metavar="N|earliest|latest|-N", help="From this offset on; -10: the last ten."),
]
FromTime = Annotated[
    str | None,
    typer.Option(metavar="TIME", help="From the first record of this time on: ISO, or epoch ms."),
]
RecordsMax = Annotated[
    int | None, typer.Option("--max-messages", min=1, help="Stop after N records.")
]
UntilOffset = Annotated[
    int | None, typer.Option(min=0, help="Stop before this offset, in each partition.")
]
Exit = Annotated[
    bool, typer.Option("--exit", "-e", help="Stop at the end that the topic has at the start.")
]
WantedIsolation = Annotated[
    Isolation | None,
    typer.Option("--isolation", "--isolation-level", help="read_uncommitted if not given."),
]
ClientRack = Annotated[
    str | None, typer.Option(metavar="RACK", help="Read from a replica in this rack (KIP-392).")
]
Fields = Annotated[
    str | None,
    typer.Option(
        "--print",
        metavar="FIELD,…",
        help="Before the value: topic, partition, offset, epoch, timestamp, key, headers.",
    ),
]
Group = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="As a member of this group, from what it has committed; commits."
    ),
]
WantedProtocol = Annotated[
    Protocol | None,
    typer.Option("--group-protocol", help="How --group agrees; classic if not given."),
]
Properties = Annotated[
    list[str] | None,
    typer.Option(
        "--consumer-property", metavar="KEY=VALUE", help="A setting by Kafka's name; repeatable."
    ),
]


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    partitions: Partitions = None,
    from_beginning: FromBeginning = False,
    offset: Offset = None,
    from_time: FromTime = None,
    records_max: RecordsMax = None,
    until_offset: UntilOffset = None,
    exits: Exit = False,
    isolation_level: WantedIsolation = None,
    client_rack: ClientRack = None,
    fields: Fields = None,
    group: Group = None,
    group_protocol: WantedProtocol = None,
    properties: Properties = None,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Read records: from the beginning, and on and on until Ctrl-C unless told where to stop.

    **Everything that is there now**, then stop:

        tidelog consume orders --exit

    **The last ten of partition 0**, with their offsets and keys:

        tidelog consume orders --partition 0 --offset -10 --exit --print offset,key

    **What was written since noon**, for another program:

        tidelog consume orders --from-time 2026-05-01T12:00:00Z --json | jq .value

    **As a member of a group**: started twice, each reads its share; what was printed is committed,
    and the next start goes on from there:

        tidelog consume orders --group mail

    It stops at the first of: Ctrl-C, `--exit` (the high watermark at the start, or the last stable
    offset under read_committed), `--until-offset`, `--max-messages`. Values are shown as the bytes
    that they are, null as `null`; `--print` fields come first, with tabs. When the log was cut
    below what was already read, standard error says so and reading goes on from there.

    `--json` is one line per record: topic, partition, offset, leader_epoch, timestamp_ms, key,
    value, headers (pairs), producer_id, producer_epoch, sequence. Bytes that are no UTF-8 are
    {"base64": …}. With `--exit`, `--timeout` is also how long nothing may come.

    A group has its own offsets: with `--group` there is no `--partition`, `--from-time` or
    `--until-offset`, and `--offset` (earliest or latest) counts where nothing is committed.
    `--group-protocol consumer` joins as KIP-848 has it: the coordinator assigns the partitions, and
    only those that move are taken from a member.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("consume"):
        first, from_time_ms = start_of(from_beginning, offset, from_time)
        show = as_json_line if as_json else partial(as_line, fields=_parsed_fields(fields))
        wanted = _parsed_partitions(partitions)
        resets_to = "none"
        if group is None and group_protocol is not None:
            raise Misused("--group-protocol: only with --group")
        if group is not None:
            is_by_partition = wanted is not None or until_offset is not None
            resets_to = group_reset(
                first, is_by_partition=is_by_partition or from_time_ms is not None
            )
        at = access(bootstrap, command_config, timeout)
        settings = at.with_settings(
            {
                "client.id": CLIENT_ID,
                "default.api.timeout.ms": str(at.timeout_ms),
                "allow.auto.create.topics": "false",
            },
            given_settings(isolation_level, client_rack, group_protocol),
            pairs_of("--consumer-property", properties),
            {"auto.offset.reset": resets_to},
            {} if group is None else {"group.id": group},
        )
        from tidelog.cli.consume.group_run import GroupRead, read_as_member
        from tidelog.cli.consume.run import ReadRange, read_on
        from tidelog.core.model.ids import TopicPartition

        count = len(existing_topic(at, topic).partitions)
        if group is not None:
            group_read = GroupRead(
                topic=topic,
                stops_at_end=exits,
                records_max=records_max,
                timeout_s=at.timeout_s,
            )
            read_as_member(settings, group_read, show)
            return
        read_range = ReadRange(
            partitions=[TopicPartition(topic, i) for i in chosen_partitions(topic, count, wanted)],
            start=first,
            from_time_ms=from_time_ms,
            stops_at_end=exits,
            until_offset=until_offset,
            records_max=records_max,
            timeout_s=at.timeout_s,
        )
        read_on(settings, read_range, show)


def start_of(
    from_beginning: bool, offset: str | None, from_time: str | None
) -> tuple[Start, int | None]:
    """One way to say where to begin, at most."""
    if (from_beginning, offset is not None, from_time is not None).count(True) > 1:
        raise Misused("choose one of --from-beginning, --offset and --from-time")
    try:
        if from_time is not None:
            return EARLIEST, moment_ms(from_time)
        return (EARLIEST if offset is None else start(offset)), None
    except ValueError as error:
        name = "--offset" if offset is not None else "--from-time"
        raise Misused(f"{name}: {error}") from None


def group_reset(first: Start, *, is_by_partition: bool) -> str:
    """Where a group begins that has committed nothing, as `auto.offset.reset` says it."""
    if is_by_partition:
        raise Misused("--group: no --partition, --from-time or --until-offset; the group decides")
    if first not in (EARLIEST, LATEST):
        raise Misused("--group: --offset may be earliest or latest; see tidelog group reset")
    return "earliest" if first == EARLIEST else "latest"


def given_settings(
    isolation_level: Isolation | None, client_rack: str | None, protocol: Protocol | None
) -> dict[str, str]:
    """Only what was given, so that a file of settings counts for the rest."""
    wanted = {
        "isolation.level": isolation_level,
        "client.rack": client_rack,
        "group.protocol": protocol,
    }
    return {key: str(value) for key, value in wanted.items() if value is not None}


def _parsed_fields(text: str | None) -> tuple[str, ...]:
    try:
        return print_fields(text)
    except ValueError as error:
        raise Misused(f"--print: {error}") from None


def _parsed_partitions(texts: list[str] | None) -> list[int] | None:
    try:
        return None if texts is None else partition_indexes(texts)
    except ValueError as error:
        raise Misused(f"--partition: {error}") from None
