"""Placement: which brokers copy a new partition, and which of them leads it.

Rules, the first one first:
  1. A broker holds a partition at most once, and its first replica, the leader, is not fenced.
  2. The replicas of a partition stand in as many racks as there are, evenly.
  3. Leaders are spread evenly over the brokers and, where brokers are equal, over the racks.
     (Stricter than Kafka, whose stripes only even out the racks.)
  4. Brokers that are not fenced are preferred. The second replicas of one leader's partitions, who
     lead when it dies, are spread over many brokers; then all replicas evenly over all brokers.

It is one greedy walk over counters. Chance only decides who is first among equals, so that many
small topics do not all begin at the same broker.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from random import Random
from typing import NamedTuple


class Candidate(NamedTuple):
    """A broker as placement sees it."""

    broker_id: int
    rack: str | None
    is_fenced: bool


class PlacementRefused(NamedTuple):
    """Why there is no placement."""

    reason: str


def assign_replicas(
    candidates: Sequence[Candidate],
    *,
    partitions_count: int,
    replication_factor: int,
    random: Random,
    existing: Sequence[Sequence[int]] = (),
) -> list[tuple[int, ...]] | PlacementRefused:
    """The replicas of each new partition, preferred leader first.

    `existing` are the replicas of the topic's partitions so far: new ones even them out.
    """
    assert partitions_count > 0
    assert replication_factor > 0
    if not candidates:
        return PlacementRefused("no broker is registered")
    if all(candidate.is_fenced for candidate in candidates):
        return PlacementRefused("all brokers are fenced")
    if replication_factor > len(candidates):
        return PlacementRefused(
            f"replication factor {replication_factor} needs more than the "
            f"{len(candidates)} registered broker(s)"
        )
    walk = _Walk(candidates, random)
    for replicas in existing:
        walk.count(tuple(replicas))
    return [walk.next_partition(replication_factor) for _ in range(partitions_count)]


class _Walk:
    """The counters of one placement."""

    def __init__(self, candidates: Sequence[Candidate], random: Random) -> None:
        ordered = sorted(candidates)
        start = random.randrange(len(ordered))
        self._candidates = _alternating_racks(ordered[start:] + ordered[:start])
        self._rack = {candidate.broker_id: candidate.rack for candidate in candidates}
        self._leads = dict.fromkeys(self._rack, 0)
        self._rack_leads = dict.fromkeys(self._rack.values(), 0)
        self._holds = dict.fromkeys(self._rack, 0)
        self._inherits: Counter[tuple[int, ...]] = Counter()

    def next_partition(self, replication_factor: int) -> tuple[int, ...]:
        leader = min(
            (candidate for candidate in self._candidates if not candidate.is_fenced),
            key=lambda c: (
                self._leads[c.broker_id],
                self._rack_leads[c.rack],
                self._holds[c.broker_id],
            ),
        )
        replicas = [leader.broker_id]
        in_rack = dict.fromkeys(self._rack_leads, 0)
        in_rack[leader.rack] += 1
        while len(replicas) < replication_factor:
            follower = min(
                (c for c in self._candidates if c.broker_id not in replicas),
                key=lambda c: (
                    in_rack[c.rack],
                    c.is_fenced,
                    self._inherits[leader.broker_id, c.broker_id] if len(replicas) == 1 else 0,
                    self._holds[c.broker_id],
                ),
            )
            replicas.append(follower.broker_id)
            in_rack[follower.rack] += 1
        self.count(tuple(replicas))
        return tuple(replicas)

    def count(self, replicas: tuple[int, ...]) -> None:
        """Brokers that have left the cluster meanwhile are not counted."""
        leader = replicas[0]
        if leader in self._leads:
            self._leads[leader] += 1
            self._rack_leads[self._rack[leader]] += 1
        for broker_id in replicas:
            if broker_id in self._holds:
                self._holds[broker_id] += 1
        self._inherits[replicas[:2]] += 1


def _alternating_racks(candidates: list[Candidate]) -> list[Candidate]:
    """First one broker of each rack, then the second of each, and so on: the order among equals."""
    seen: dict[str | None, int] = {}
    ranked = []
    for position, candidate in enumerate(candidates):
        rank = seen.get(candidate.rack, 0)
        seen[candidate.rack] = rank + 1
        ranked.append((rank, position, candidate))
    return [candidate for _, _, candidate in sorted(ranked, key=lambda item: item[:2])]
