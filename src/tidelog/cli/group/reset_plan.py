"""Where a reset moves a group, decided from the ends of the log and what is committed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tidelog.cli.option_values import partition_indexes
from tidelog.core.model.ids import TopicPartition


class ResetTo(NamedTuple):
    """One of these is set: to one of the ends, an offset, a time, or by a distance."""

    earliest: bool = False
    latest: bool = False
    offset: int | None = None
    time_ms: int | None = None
    shift_by: int | None = None


class ResetFacts(NamedTuple):
    """What is known of one partition before the reset."""

    earliest: int
    latest: int
    committed: int | None = None
    at_time: int | None = None
    """The first record at or after the wanted time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResetStep:
    """One partition: from where, and to where."""

    name: TopicPartition
    before: int | None
    after: int
    note: str | None = None
    """Why it is not the offset that was asked for."""

    def as_json(self) -> dict[str, Any]:
        return {
            "topic": self.name.topic,
            "partition": self.name.index,
            "committed": self.before,
            "new_offset": self.after,
            "note": self.note,
        }


def reset_step(name: TopicPartition, to: ResetTo, facts: ResetFacts) -> ResetStep:
    """ValueError if there is nothing to count from."""
    if to.earliest:
        wanted = facts.earliest
    elif to.latest:
        wanted = facts.latest
    elif to.time_ms is not None:
        wanted = facts.latest if facts.at_time is None else facts.at_time
    elif to.offset is not None:
        wanted = to.offset
    elif facts.committed is None:
        raise ValueError(f"{name} has no committed offset to shift")
    else:
        assert to.shift_by is not None
        wanted = facts.committed + to.shift_by
    after = min(max(wanted, facts.earliest), facts.latest)
    note = None
    if after != wanted:
        end = "first" if after == facts.earliest else "end"
        note = f"{wanted} is not in the log: its {end} is {after}"
    elif to.time_ms is not None and facts.at_time is None:
        note = "nothing was written since then"
    return ResetStep(name=name, before=facts.committed, after=after, note=note)


def wanted_topics(texts: Iterable[str]) -> dict[str, list[int] | None]:
    """`orders` and `payments:0,1`: the topics, all partitions of each or only these."""
    found: dict[str, list[int] | None] = {}
    for text in texts:
        topic, colon, indexes = text.partition(":")
        if not topic:
            raise ValueError(f"{text!r} is not TOPIC or TOPIC:0,1")
        if not colon:
            found[topic] = None
            continue
        before = found.get(topic, [])
        chosen = partition_indexes([indexes])
        found[topic] = None if before is None else sorted({*before, *chosen})
    return found
