"""Groups with their members, committed offsets and lag: several questions, put together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidelog.client.admin.admin import Failed
from tidelog.client.admin.cluster import describe_cluster
from tidelog.client.admin.groups import (
    GroupDescription,
    GroupListing,
    GroupMemberDescription,
    committed_offsets,
    describe_group,
    list_groups,
)
from tidelog.client.admin.offsets import list_offset
from tidelog.client.group.offset_requests import FetchedOffsets
from tidelog.client.shells.blocking_clients import Admin, RequestFailed
from tidelog.client.shells.topic_descriptions import SILENT_BROKER_S
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.sentinels import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP

K = TypeVar("K")
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupPartition:
    """One partition that a group has committed in, or that a member owns."""

    name: TopicPartition
    committed: int | None
    log_end: int | None
    """The high watermark: what consumers can read up to. None: no leader told it."""
    member: GroupMemberDescription | None

    @property
    def lag(self) -> int | None:
        """How much there is to read; None without an offset to count from."""
        if self.committed is None or self.log_end is None:
            return None
        return max(0, self.log_end - self.committed)


@dataclass(frozen=True, slots=True, kw_only=True)
class DescribedConsumerGroup:
    """A group with everything that is known of it."""

    listing: GroupListing
    coordinator: int | None
    description: GroupDescription | None
    """None: it is of a type whose members cannot be described here."""
    partitions: tuple[GroupPartition, ...]

    @property
    def members(self) -> tuple[GroupMemberDescription, ...]:
        return () if self.description is None else self.description.members

    @property
    def lag(self) -> int | None:
        """Of all partitions with a lag; None if there is none."""
        lags = [each.lag for each in self.partitions if each.lag is not None]
        return sum(lags) if lags else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedGroups:
    """The groups by name with their coordinators; brokers that did not answer, and why."""

    groups: dict[str, tuple[GroupListing, int]]
    silent: dict[int, str]


def list_all_groups(
    admin: Admin, *, states: Sequence[str] = (), types: Sequence[str] = (), timeout_s: float
) -> ListedGroups:
    """Every broker is asked for those that it coordinates."""
    brokers = admin.ask(describe_cluster(), timeout_s=timeout_s).brokers
    questions = {each: list_groups(broker_id=each, states=states, types=types) for each in brokers}
    answers = admin.ask_each(questions, timeout_s=min(timeout_s, SILENT_BROKER_S))
    groups: dict[str, tuple[GroupListing, int]] = {}
    silent: dict[int, str] = {}
    for broker_id, answer in sorted(answers.items()):
        if isinstance(answer, Failed):
            silent[broker_id] = answer.reason
            continue
        for each in answer:
            groups[each.group_id] = (each, broker_id)
    return ListedGroups(groups=dict(sorted(groups.items())), silent=silent)


def describe_groups(
    admin: Admin, listed: ListedGroups, names: Iterable[str], *, timeout_s: float
) -> dict[str, DescribedConsumerGroup]:
    """These of the listed groups, with lag; RequestFailed if one cannot be asked about."""
    wanted = [each for each in names if each in listed.groups]
    is_classic = {each: listed.groups[each][0].group_type in (None, "classic") for each in wanted}
    described = _answers(
        admin.ask_each(
            {each: describe_group(each) for each in wanted if is_classic[each]},
            timeout_s=timeout_s,
        )
    )
    offsets = _answers(
        admin.ask_each({each: committed_offsets(each) for each in wanted}, timeout_s=timeout_s)
    )
    owners = {
        (group_id, partition): member
        for group_id, group in described.items()
        for member in group.members
        for partition in member.partitions
    }
    shown = {
        group_id: sorted(
            {*offsets[group_id].offsets, *(each for name, each in owners if name == group_id)}
        )
        for group_id in wanted
    }
    every = {each for partitions in shown.values() for each in partitions}
    ends = high_watermarks_of(admin, every, timeout_s=timeout_s)
    return {
        group_id: DescribedConsumerGroup(
            listing=listed.groups[group_id][0],
            coordinator=listed.groups[group_id][1],
            description=described.get(group_id),
            partitions=tuple(
                GroupPartition(
                    name=each,
                    committed=_offset(offsets[group_id], each),
                    log_end=ends[each],
                    member=owners.get((group_id, each)),
                )
                for each in shown[group_id]
            ),
        )
        for group_id in wanted
    }


def _offset(offsets: FetchedOffsets, partition: TopicPartition) -> int | None:
    committed = offsets.offsets.get(partition)
    return None if committed is None else committed.offset


def high_watermarks_of(
    admin: Admin, partitions: Iterable[TopicPartition], *, timeout_s: float
) -> dict[TopicPartition, int | None]:
    """As far as consumers can read; None where no leader could be asked in time."""
    return offsets_for_time(admin, partitions, LATEST_TIMESTAMP, timeout_s=timeout_s)


def first_offsets(
    admin: Admin, partitions: Iterable[TopicPartition], *, timeout_s: float
) -> dict[TopicPartition, int | None]:
    """Where each log begins; None where no leader could be asked in time."""
    return offsets_for_time(admin, partitions, EARLIEST_TIMESTAMP, timeout_s=timeout_s)


def offsets_for_time(
    admin: Admin, partitions: Iterable[TopicPartition], timestamp_ms: int, *, timeout_s: float
) -> dict[TopicPartition, int | None]:
    """The first record of this time or later; None also where there is no such record."""
    questions = {each: list_offset(each, timestamp_ms) for each in sorted(partitions)}
    answers = admin.ask_each(questions, timeout_s=min(timeout_s, SILENT_BROKER_S))
    return {
        name: answer.offset
        if not isinstance(answer, Failed) and answer.error == ErrorCode.NONE
        else None
        for name, answer in answers.items()
    }


def _answers(answers: dict[K, T | Failed]) -> dict[K, T]:
    usable: dict[K, T] = {}
    for key, answer in answers.items():
        if isinstance(answer, Failed):
            raise RequestFailed(f"group {key}: {answer.reason}")
        usable[key] = answer
    return usable
