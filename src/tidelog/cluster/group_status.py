"""Consumer groups in a cluster's status: state, members and total lag of each.

The brokers that answer are asked for the groups that they coordinate, then each for its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.client.admin.groups import (
    GroupDescription,
    GroupListing,
    committed_offsets,
    describe_group,
    list_groups,
)
from tidelog.client.admin.question import Question
from tidelog.client.group.offset_requests import FetchedOffsets
from tidelog.cluster.admin_fanout import AdminFanout
from tidelog.cluster.status import GroupStatus, PartitionStatus
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition

GROUPS_MAX = 20
Answer = GroupDescription | FetchedOffsets | None


def group_statuses(
    fanout: AdminFanout,
    brokers: Iterable[int],
    partitions: Iterable[PartitionStatus],
    *,
    timeout_s: float,
) -> tuple[GroupStatus, ...]:
    """The first ones by name. No broker is asked again: what it cannot tell now is unknown."""
    listed = fanout.ask_each(
        {each: (each, list_groups(broker_id=each).at_once()) for each in brokers},
        timeout_s=timeout_s,
    )
    found = {
        group.group_id: (group, node)
        for node, groups in sorted(listed.items())
        for group in groups or ()
    }
    shown = dict(sorted(found.items())[:GROUPS_MAX])
    questions: dict[tuple[str, str], tuple[int, Question[Answer]]] = {}
    for name, (_, node) in shown.items():
        members, offsets = describe_group(name).at_once(), committed_offsets(name).at_once()
        questions[name, "members"] = (node, members)  # type: ignore[assignment]
        questions[name, "offsets"] = (node, offsets)  # type: ignore[assignment]
    answers = fanout.ask_each(questions, timeout_s=timeout_s) if questions else {}
    ends = {TopicPartition(each.topic, each.partition): each.high_watermark for each in partitions}
    return tuple(
        _status(listing, answers.get((name, "members")), answers.get((name, "offsets")), ends)
        for name, (listing, _) in shown.items()
    )


def _status(
    listing: GroupListing,
    members: Answer,
    offsets: Answer,
    ends: Mapping[TopicPartition, int | None],
) -> GroupStatus:
    members_total = None
    if isinstance(members, GroupDescription) and members.error == ErrorCode.NONE:
        members_total = len(members.members)
    return GroupStatus(
        group=listing.group_id,
        state=listing.state,
        type=listing.group_type,
        members=members_total,
        lag=_lag(offsets, ends) if isinstance(offsets, FetchedOffsets) else None,
    )


def _lag(offsets: FetchedOffsets, ends: Mapping[TopicPartition, int | None]) -> int | None:
    """None if it has committed nothing, or if some log end is not known."""
    lags = []
    for name, committed in offsets.offsets.items():
        end = ends.get(name)
        if end is None:
            return None
        lags.append(max(0, end - committed.offset))
    return sum(lags) if lags else None
