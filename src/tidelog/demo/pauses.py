"""How long clients could not write: the pause in a partition's acknowledgements around a blow."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class AckTiming(NamedTuple):
    """When a record of a partition left, and when it was acknowledged, on the same clock."""

    partition: int
    sent_s: float
    told_s: float


class WritePauses(NamedTuple):
    """What the acknowledgements since a blow say."""

    paused_s: Mapping[int, float]
    """The longest pause of each partition, as far as it reaches beyond the blow."""
    went_on: frozenset[int]
    """Partitions that have acknowledged something that was sent after it."""

    @property
    def worst_s(self) -> float:
        return max(self.paused_s.values(), default=0.0)


def write_pauses(told: Iterable[AckTiming], *, blow_s: float) -> WritePauses:
    """A pause reaches from one acknowledgement of a partition to its next one."""
    previous: dict[int, float] = {}
    paused: dict[int, float] = {}
    went_on: set[int] = set()
    for each in sorted(told, key=lambda one: one.told_s):
        before_s = previous.get(each.partition, each.sent_s)
        if each.told_s > blow_s:
            pause_s = each.told_s - before_s
            paused[each.partition] = max(paused.get(each.partition, 0.0), pause_s)
        if each.sent_s > blow_s:
            went_on.add(each.partition)
        previous[each.partition] = each.told_s
    return WritePauses(paused, frozenset(went_on))
