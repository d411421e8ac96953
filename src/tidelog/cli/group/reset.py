"""`tidelog group reset`: move a group's committed offsets; shows the plan unless told to act."""

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
from tidelog.cli.exit_codes import Misused, VerbFailed, refusal, verb
from tidelog.cli.group.reset_plan import ResetFacts, ResetStep, ResetTo, reset_step, wanted_topics
from tidelog.cli.option_values import moment_ms
from tidelog.cli.text_columns import columns
from tidelog.cli.topic.lookup import chosen_partitions, existing_topic

if TYPE_CHECKING:
    from tidelog.client.shells.blocking_clients import Admin
    from tidelog.core.model.ids import TopicPartition

_HEADER = ("topic", "partition", "committed", "new offset", "note")
_RESETTABLE = ("Empty", "Dead")


def reset(
    name: Annotated[str, typer.Argument(metavar="NAME")],
    topics: Annotated[
        list[str] | None,
        typer.Option("--topic", metavar="TOPIC[:0,1]", help="Of these topics; repeatable."),
    ] = None,
    all_topics: Annotated[
        bool, typer.Option("--all-topics", help="Of every topic that it has committed in.")
    ] = False,
    to_earliest: Annotated[
        bool, typer.Option("--to-earliest", help="To the first record.")
    ] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="Behind the last one.")] = False,
    to_offset: Annotated[
        int | None, typer.Option("--to-offset", min=0, help="To this offset, within the log.")
    ] = None,
    to_datetime: Annotated[
        str | None,
        typer.Option("--to-datetime", metavar="TIME", help="To a time: ISO, or epoch ms."),
    ] = None,
    shift_by: Annotated[
        int | None, typer.Option("--shift-by", help="Forward, or back if negative.")
    ] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done: the default.")
    ] = False,
    bootstrap: Bootstrap = DEFAULT_BOOTSTRAP,
    command_config: CommandConfig = None,
    timeout: Timeout = DEFAULT_TIMEOUT,
    as_json: AsJson = False,
) -> None:
    """Move the committed offsets of a group without members. Shows the plan; `--execute` acts.

    **Read a topic again**, first as a plan, then really:

        tidelog group reset mail --topic orders --to-earliest

        tidelog group reset mail --topic orders --to-earliest --execute

    **Two partitions back by a hundred**:

        tidelog group reset mail --topic orders:0,1 --shift-by -100 --execute

    **To what was written since noon**, in every topic:

        tidelog group reset mail --all-topics --to-datetime 2026-05-01T12:00:00Z --execute

    An offset outside of the log becomes its first or its end. A group that does not exist yet is
    made by its first offset. Members would go on from where they are, so that they must be stopped
    first: a group that has any is refused with NON_EMPTY_GROUP.

    `--json` is one document: group, executed, partitions (topic, partition, committed, new_offset,
    note). Exit code 1 if it was refused.
    """
    # Size: the options of one command and the help that teaches them.
    with verb("group reset"):
        if execute and dry_run:
            raise Misused("choose one of --dry-run and --execute")
        to = _target(to_earliest, to_latest, to_offset, to_datetime, shift_by)
        if bool(topics) == all_topics:
            raise Misused("say which topics: --topic TOPIC[:0,1], or --all-topics")
        wanted = _wanted(topics)
        at = access(bootstrap, command_config, timeout)
        from tidelog.client.shells.blocking_clients import Admin

        with Admin(at.settings) as admin:
            _refuse_members(admin, at, name)
            steps = _plan(admin, at, name, wanted, to)
            if execute:
                _commit(admin, at, name, steps)
        if as_json:
            partitions = [each.as_json() for each in steps]
            print(json.dumps({"group": name, "executed": execute, "partitions": partitions}))
        else:
            print(columns(_HEADER, [list(each.as_json().values()) for each in steps]))
            if not execute:
                print("nothing was changed; to do it: --execute")


def _target(
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_datetime: str | None,
    shift_by: int | None,
) -> ResetTo:
    given = (to_earliest, to_latest, to_offset is not None, to_datetime is not None)
    if (*given, shift_by is not None).count(True) != 1:
        raise Misused(
            "choose one of --to-earliest, --to-latest, --to-offset, --to-datetime and --shift-by"
        )
    try:
        time_ms = None if to_datetime is None else moment_ms(to_datetime)
    except ValueError as error:
        raise Misused(f"--to-datetime: {error}") from None
    return ResetTo(to_earliest, to_latest, to_offset, time_ms, shift_by)


def _wanted(topics: list[str] | None) -> dict[str, list[int] | None]:
    try:
        return wanted_topics(topics or ())
    except ValueError as error:
        raise Misused(f"--topic: {error}") from None


def _refuse_members(admin: Admin, at: Access, name: str) -> None:
    """The list names groups of every type; a group that is not there yet has no members."""
    from tidelog.client.shells.groups import list_all_groups

    listed = list_all_groups(admin, timeout_s=at.timeout_s)
    if name not in listed.groups and listed.silent:
        raise VerbFailed(f"broker {min(listed.silent)} did not list its groups; try again")
    state = listed.groups[name][0].state if name in listed.groups else None
    if state is not None and state not in _RESETTABLE:
        because = f"group {name} is {state}; stop its members first"
        raise VerbFailed(refusal("NON_EMPTY_GROUP", None, because))


def _plan(
    admin: Admin, at: Access, name: str, topics: dict[str, list[int] | None], to: ResetTo
) -> list[ResetStep]:
    from tidelog.client.admin.groups import committed_offsets
    from tidelog.client.shells.groups import first_offsets, high_watermarks_of, offsets_for_time
    from tidelog.core.model.errors import ErrorCode
    from tidelog.core.model.ids import TopicPartition

    found = admin.ask(committed_offsets(name), timeout_s=at.timeout_s)
    if found.error not in (ErrorCode.NONE, ErrorCode.GROUP_ID_NOT_FOUND):
        raise VerbFailed(refusal(found.error.name, None, f"group {name}"))
    partitions = sorted(found.offsets)
    if topics:
        partitions = [
            TopicPartition(topic, index)
            for topic, indexes in sorted(topics.items())
            for index in chosen_partitions(
                topic, len(existing_topic(at, topic).partitions), indexes
            )
        ]
    if not partitions:
        raise VerbFailed(f"group {name} has committed nothing; name its topics with --topic")
    firsts = first_offsets(admin, partitions, timeout_s=at.timeout_s)
    ends = high_watermarks_of(admin, partitions, timeout_s=at.timeout_s)
    times: dict[TopicPartition, int | None] = {}
    if to.time_ms is not None:
        times = offsets_for_time(admin, partitions, to.time_ms, timeout_s=at.timeout_s)
    steps = []
    for each in partitions:
        first, end = firsts[each], ends[each]
        if first is None or end is None:
            raise VerbFailed(f"LEADER_NOT_AVAILABLE: nobody tells where the log of {each} ends")
        committed = found.offsets[each].offset if each in found.offsets else None
        facts = ResetFacts(first, end, committed, times.get(each))
        try:
            steps.append(reset_step(each, to, facts))
        except ValueError as error:
            raise VerbFailed(str(error)) from None
    return steps


def _commit(admin: Admin, at: Access, name: str, steps: list[ResetStep]) -> None:
    from tidelog.client.admin.groups import commit_group_offsets
    from tidelog.client.group.offset_requests import OffsetAndMetadata
    from tidelog.core.model.errors import ErrorCode

    offsets = {each.name: OffsetAndMetadata(each.after) for each in steps}
    errors = admin.ask(commit_group_offsets(name, offsets), timeout_s=at.timeout_s)
    refused = {each: error for each, error in errors.items() if error != ErrorCode.NONE}
    if ErrorCode.UNKNOWN_MEMBER_ID in refused.values():
        because = f"a member has joined group {name} meanwhile; stop its members first"
        raise VerbFailed(refusal("NON_EMPTY_GROUP", None, because))
    for each, error in refused.items():
        raise VerbFailed(refusal(error.name, None, f"{each} was not reset"))
