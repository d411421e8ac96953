"""A plan for a reassignment: which brokers hold which partitions, with as few moves as can be.

A replica that stands on one of the wanted brokers stays, in its place of the order. Each free place
goes to the broker with the fewest replicas of the same partition in its rack, then, for the first
place, with the fewest leaders, then with the fewest replicas. So leaders and replicas stay even.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tidelog.core.model.ids import TopicPartition

Replicas = tuple[int, ...]


class TooFewBrokers(NamedTuple):
    """Why there is no plan: a partition needs more brokers than there are."""

    partition: TopicPartition
    replicas: int
    brokers: int


def plan_reassignment(
    current: Mapping[TopicPartition, Replicas],
    *,
    brokers: Mapping[int, str | None],
    keepers: Mapping[int, str | None] | None = None,
    elsewhere: Sequence[Replicas] = (),
    replication_factor: int | None = None,
) -> dict[TopicPartition, Replicas] | TooFewBrokers:
    """The replicas of each partition on these brokers (ids and racks), unmoved ones included.

    `keepers` are brokers that keep what they have and get nothing more. `elsewhere` are partitions
    that stay where they are and load the same brokers.
    """
    kept = keepers or {}
    for name, replicas in sorted(current.items()):
        count = replication_factor or len(replicas)
        usable = len({*brokers, *(each for each in replicas if each in kept)})
        if count > usable:
            return TooFewBrokers(name, count, usable)
    plan = _Plan(brokers, kept, [*elsewhere, *current.values()])
    return {
        name: plan.assign(replicas, replication_factor or len(replicas))
        for name, replicas in sorted(current.items())
    }


class _Plan:
    """How much each broker holds and leads, as far as the plan has come."""

    def __init__(
        self,
        brokers: Mapping[int, str | None],
        keepers: Mapping[int, str | None],
        loads: Sequence[Replicas],
    ) -> None:
        self._brokers = brokers
        self._racks = {**keepers, **brokers}
        self._holds = Counter(each for replicas in loads for each in replicas)
        self._leads = Counter(replicas[0] for replicas in loads if replicas)

    def assign(self, before: Replicas, count: int) -> Replicas:
        kept: list[int | None] = [each if each in self._racks else None for each in before]
        if count < len(kept):
            staying = [each for each in kept if each is not None]
            kept = [*staying[:count], *[None] * (count - len(staying))]
        kept += [None] * (count - len(kept))
        chosen = [each for each in kept if each is not None]
        after: list[int] = []
        for position, broker in enumerate(kept):
            if broker is None:
                broker = self._best(chosen, is_first=position == 0)
                chosen.append(broker)
            after.append(broker)
        self._holds.subtract(before)
        self._holds.update(after)
        self._leads[before[0]] -= 1
        self._leads[after[0]] += 1
        return tuple(after)

    def _best(self, chosen: Sequence[int], *, is_first: bool) -> int:
        racks = Counter(self._racks[each] for each in chosen)
        return min(
            (each for each in self._brokers if each not in chosen),
            key=lambda each: (
                # Brokers without a rack are no rack of their own.
                racks[self._brokers[each]] if self._brokers[each] is not None else 0,
                self._leads[each] if is_first else 0,
                self._holds[each],
                each,
            ),
        )
