"""Who gets which partition: the leader of a classic group decides, by Kafka's rules.

Both assignors are eager: a member gives everything back before it joins again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import cycle
from typing import NamedTuple

from tidelog.core.model.ids import TopicPartition


class SubscribedMember(NamedTuple):
    """A member as the leader sees it. Static members come first, by their names."""

    member_id: str
    group_instance_id: str | None
    topics: tuple[str, ...]

    @property
    def order(self) -> tuple[bool, str]:
        return (self.group_instance_id is None, self.group_instance_id or self.member_id)


Assignments = dict[str, list[TopicPartition]]
"""By member id; every member has an entry."""
Assignor = Callable[[Sequence[SubscribedMember], Mapping[str, int]], Assignments]


def assign_ranges(
    members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]
) -> Assignments:
    """Each topic in consecutive parts, the first ones larger by one."""
    assigned: Assignments = {each.member_id: [] for each in members}
    for topic, count in sorted(partition_counts.items()):
        subscribed = sorted(
            (each for each in members if topic in each.topics), key=lambda each: each.order
        )
        first = 0
        for position, each in enumerate(subscribed):
            size = count // len(subscribed) + (position < count % len(subscribed))
            assigned[each.member_id] += [
                TopicPartition(topic, index) for index in range(first, first + size)
            ]
            first += size
    return assigned


def assign_round_robin(
    members: Sequence[SubscribedMember], partition_counts: Mapping[str, int]
) -> Assignments:
    """All partitions of all topics dealt out in turn, to members that subscribe to the topic."""
    assigned: Assignments = {each.member_id: [] for each in members}
    turns = cycle(sorted(members, key=lambda each: each.order))
    wanted = {topic for each in members for topic in each.topics}
    for topic, count in sorted(partition_counts.items()):
        for index in range(count) if topic in wanted else ():
            taker = next(each for each in turns if topic in each.topics)
            assigned[taker.member_id].append(TopicPartition(topic, index))
    return assigned


ASSIGNORS: dict[str, Assignor] = {"range": assign_ranges, "roundrobin": assign_round_robin}
"""By the names that members of a group agree on."""
