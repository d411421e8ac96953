"""Where reading begins and ends, as options give it: earliest or latest, by offset or by time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tidelog.core.model.ids import TopicPartition
from tidelog.spark.source.errors import OptionError

EARLIEST = -2
LATEST = -1
"""Instead of an offset: that end of the partition."""
_OFFSETS_LIKE = '{"topicA":{"0":23,"1":-1},"topicB":{"0":-2}}'
_TIMES_LIKE = '{"topicA":{"0":1000,"1":1000},"topicB":{"0":2000}}'
_PARTITIONS_LIKE = '{"topicA":[0,1],"topicB":[2,4]}'


class Edge(Enum):
    """One end of every partition."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class AtOffsets:
    """An offset for every partition; LATEST and EARLIEST mean the ends."""

    option: str
    offsets: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTimes:
    """A time for every partition: its first record at or after it."""

    option: str
    timestamps_ms: Mapping[TopicPartition, int]


@dataclass(frozen=True, slots=True)
class AtTime:
    """The same time for all partitions."""

    option: str
    timestamp_ms: int


Bound = Edge | AtOffsets | AtTimes | AtTime


def at_edge(
    bound: Bound, edge: Edge, partitions: frozenset[TopicPartition]
) -> frozenset[TopicPartition]:
    """The partitions that a bound puts at this end of them."""
    if isinstance(bound, AtOffsets):
        wanted = EARLIEST if edge is Edge.EARLIEST else LATEST
        return frozenset(each for each, offset in bound.offsets.items() if offset == wanted)
    return partitions if bound is edge else frozenset()


def read_bound(
    options: Mapping[str, str], *, time: str, times: str, offsets: str, default: Edge
) -> Bound:
    """Read the options of one end: one time overrides times, and times override offsets."""
    if (text := options.get(time.lower())) is not None:
        return AtTime(time, _timestamp(time, text))
    if (text := options.get(times.lower())) is not None:
        found = _numbers(times, text, like=_TIMES_LIKE)
        if any(number < 0 for number in found.values()):
            raise OptionError(f"{times} must have times in milliseconds since 1970, got {text}")
        return AtTimes(times, found)
    if (text := options.get(offsets.lower())) is None:
        return default
    word = text.strip().lower()
    if word in (edge.value for edge in Edge):
        return Edge(word)
    if not word.startswith("{"):
        raise OptionError(f"{offsets} must be earliest, latest or like {_OFFSETS_LIKE}, got {text}")
    found = _numbers(offsets, text, like=_OFFSETS_LIKE)
    for partition, number in found.items():
        if number < EARLIEST:
            raise OptionError(
                f"{offsets} of {partition} is {number}: not an offset, nor -1 (latest) or"
                " -2 (earliest)"
            )
    return AtOffsets(offsets, found)


def read_partitions(option: str, text: str) -> frozenset[TopicPartition]:
    """Partitions by topic."""
    found: set[TopicPartition] = set()
    for topic, indexes in _objects(option, text, like=_PARTITIONS_LIKE).items():
        if not isinstance(indexes, list) or not all(_is_index(each) for each in indexes):
            raise _bad_format(option, text, _PARTITIONS_LIKE)
        found.update(TopicPartition(topic, index) for index in indexes)
    if not found:
        raise OptionError(f"{option} names no partition: {text}")
    return frozenset(found)


def _timestamp(option: str, text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = -1
    if number < 0:
        raise OptionError(f"{option} must be a time in milliseconds since 1970, got {text!r}")
    return number


def _numbers(option: str, text: str, *, like: str) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, by_index in _objects(option, text, like=like).items():
        if not isinstance(by_index, dict):
            raise _bad_format(option, text, like)
        for index, number in by_index.items():
            if not index.isdecimal() or type(number) is not int:
                raise _bad_format(option, text, like)
            found[TopicPartition(topic, int(index))] = number
    return found


def _objects(option: str, text: str, *, like: str) -> dict[str, object]:
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise _bad_format(option, text, like)
    return parsed


def _is_index(number: object) -> bool:
    return type(number) is int and number >= 0


def _bad_format(option: str, text: str, like: str) -> OptionError:
    return OptionError(f"{option} must be like {like}, got {text}")
