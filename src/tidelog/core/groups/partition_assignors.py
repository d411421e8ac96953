"""The assignors of KIP-848 groups: who should read which partition.

`range` gives each member neighbouring partitions of every topic, by the order of members, so that
topics of equal size are joined at one member. `uniform` evens out how many partitions members have
and moves as few as it can. Neither looks at racks, as in Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Final

from tidelog.core.groups.consumer_records import PartitionKey
from tidelog.core.model.ids import TopicId

BALANCE_ROUNDS_MAX: Final = 16
"""Overlapping subscriptions may take many rounds to even out; each about halves what is left."""

Target = dict[str, frozenset[PartitionKey]]
Counts = Mapping[TopicId, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class AssignableMember:
    """What an assignor knows of a member."""

    instance_id: str | None
    topics: AbstractSet[TopicId]
    """All of them exist."""
    target: AbstractSet[PartitionKey]
    """What it should have had until now."""


def assign_range(members: Mapping[str, AssignableMember], counts: Counts) -> Target:
    """Static members come first, by their instance ids, since these survive a restart."""
    order = sorted(
        members,
        key=lambda member_id: (
            members[member_id].instance_id is None,
            members[member_id].instance_id or member_id,
        ),
    )
    readers: dict[TopicId, list[str]] = {}
    for member_id in order:
        for topic_id in members[member_id].topics:
            readers.setdefault(topic_id, []).append(member_id)
    target: dict[str, set[PartitionKey]] = {member_id: set() for member_id in members}
    for topic_id, subscribers in readers.items():
        quota, extra = divmod(counts[topic_id], len(subscribers))
        start = 0
        for position, member_id in enumerate(subscribers):
            end = start + quota + (position < extra)
            target[member_id].update((topic_id, index) for index in range(start, end))
            start = end
    return {member_id: frozenset(each) for member_id, each in target.items()}


def assign_uniform(members: Mapping[str, AssignableMember], counts: Counts) -> Target:
    """Keep what still holds, give the rest to those who have least, then even out."""
    return _UniformAssignment(members, counts).assign()


class _UniformAssignment:
    """One computation. Members are taken in the order of their ids, so its result is one."""

    def __init__(self, members: Mapping[str, AssignableMember], counts: Counts) -> None:
        self._counts = counts
        self._order = sorted(members)
        self._readers: dict[TopicId, list[int]] = {}
        self._loads = [0] * len(self._order)
        self._owners: dict[PartitionKey, int] = {}
        for position, member_id in enumerate(self._order):
            member = members[member_id]
            for topic_id in sorted(member.topics):
                self._readers.setdefault(topic_id, []).append(position)
            for partition in sorted(member.target):
                topic_id, index = partition
                if topic_id in member.topics and index < counts[topic_id]:
                    self._move(partition, position)

    def assign(self) -> Target:
        topics = sorted(
            self._readers,
            key=lambda topic_id: (
                -self._counts[topic_id] / len(self._readers[topic_id]),
                len(self._readers[topic_id]),
                topic_id,
            ),
        )
        for topic_id in topics:
            self._assign_rest(topic_id)
        shared = [topic_id for topic_id in topics if len(self._readers[topic_id]) > 1]
        for _ in range(BALANCE_ROUNDS_MAX):
            if not sum(self._balance(topic_id) for topic_id in shared):
                break
        target: dict[str, set[PartitionKey]] = {member_id: set() for member_id in self._order}
        for partition, position in self._owners.items():
            target[self._order[position]].add(partition)
        return {member_id: frozenset(each) for member_id, each in target.items()}

    def _assign_rest(self, topic_id: TopicId) -> None:
        """Partitions that nobody has, each to the reader with the fewest at that moment."""
        least = [(self._loads[position], position) for position in self._readers[topic_id]]
        heapify(least)
        for index in range(self._counts[topic_id]):
            if (topic_id, index) not in self._owners:
                _, position = heappop(least)
                self._move((topic_id, index), position)
                heappush(least, (self._loads[position], position))

    def _balance(self, topic_id: TopicId) -> int:
        """Move partitions of one topic while that brings its readers nearer; how many moved."""
        readers = self._readers[topic_id]
        loads = [self._loads[position] for position in readers]
        if max(loads) - min(loads) <= 1:
            return 0
        owned: dict[int, list[int]] = {}
        for index in range(self._counts[topic_id]):
            owned.setdefault(self._owners[topic_id, index], []).append(index)
        most = [(-self._loads[position], position) for position in owned]
        least = [(self._loads[position], position) for position in readers]
        heapify(most)
        heapify(least)
        moved = 0
        while most:
            load, giver = heappop(most)
            if -load != self._loads[giver]:  # it has changed since: look again at its place
                if owned.get(giver):
                    heappush(most, (-self._loads[giver], giver))
                continue
            while self._loads[least[0][1]] != least[0][0]:
                _, stale = heappop(least)
                heappush(least, (self._loads[stale], stale))
            taker = least[0][1]
            if self._loads[giver] - self._loads[taker] <= 1:
                break
            index = owned[giver].pop()
            self._move((topic_id, index), taker)
            moved += 1
            if owned[giver]:
                heappush(most, (-self._loads[giver], giver))
        return moved

    def _move(self, partition: PartitionKey, position: int) -> None:
        before = self._owners.get(partition)
        if before is not None:
            self._loads[before] -= 1
        self._owners[partition] = position
        self._loads[position] += 1


UNIFORM: Final = "uniform"
RANGE: Final = "range"
ASSIGNORS: Final[Mapping[str, Callable[[Mapping[str, AssignableMember], Counts], Target]]] = {
    UNIFORM: assign_uniform,
    RANGE: assign_range,
}
"""By name; the first one is taken by groups whose members ask for none."""
DEFAULT_ASSIGNOR: Final = UNIFORM
