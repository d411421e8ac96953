"""How people spell things on a command line, read into values; ValueError says what is wrong."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import NamedTuple

from tidelog.core.model.ids import TopicPartition

_ESCAPES = {"\\t": "\t", "\\n": "\n", "\\0": "\0", "\\\\": "\\"}


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """KEY=VALUE; the value may be empty and may have further equal signs."""
    found: dict[str, str] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key.strip():
            raise ValueError(f"{text!r} is not KEY=VALUE")
        found[key.strip()] = value
    return found


def properties(text: str) -> dict[str, str]:
    """A properties file: KEY=VALUE or KEY: VALUE lines, # and ! begin comments."""
    found: dict[str, str] = {}
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        at = min((stripped.find(sign) for sign in "=:" if sign in stripped), default=0)
        if at <= 0:
            raise ValueError(f"line {number}, {stripped!r}, is not KEY=VALUE")
        found[stripped[:at].rstrip()] = stripped[at + 1 :].lstrip()
    return found


def replica_assignment(text: str) -> dict[int, list[int]]:
    """`1:2:3,2:3:1`: for each partition its brokers, the preferred leader first."""
    placed: dict[int, list[int]] = {}
    for index, part in enumerate(text.split(",")):
        brokers = [_natural(each) for each in part.split(":")]
        if None in brokers:
            raise ValueError(f"{part!r} is not a list of broker ids such as 1:2:3")
        placed[index] = [each for each in brokers if each is not None]
        if len(set(placed[index])) < len(brokers):
            raise ValueError(f"{part!r} names a broker twice")
    if len({len(brokers) for brokers in placed.values()}) > 1:
        raise ValueError(f"{text!r} gives partitions different replication factors")
    return placed


def broker_ids(text: str) -> list[int]:
    """`4,5,6`: brokers in this order, each once."""
    found = [_natural(each) for each in text.split(",")]
    ids = [each for each in found if each is not None]
    if len(ids) < len(found):
        raise ValueError(f"{text!r} is not a list of broker ids such as 4,5,6")
    if len(set(ids)) < len(ids):
        raise ValueError(f"{text!r} names a broker twice")
    return ids


def partition_indexes(texts: Iterable[str]) -> list[int]:
    """`0,2` and `1`: the partitions in order, each once."""
    found: set[int] = set()
    for part in (each for text in texts for each in text.split(",")):
        index = _natural(part)
        if index is None:
            raise ValueError(f"{part!r} is not the number of a partition")
        found.add(index)
    return sorted(found)


def topic_partition(text: str) -> TopicPartition:
    """`orders-0`; topics may have dashes of their own."""
    topic, _, index_text = text.rpartition("-")
    index = _natural(index_text)
    if not topic or index is None:
        raise ValueError(f"{text!r} is not TOPIC-PARTITION, such as orders-0")
    return TopicPartition(topic, index)


class Start(NamedTuple):
    """Where to begin: an offset from the beginning (>= 0), or so many before the end."""

    offset: int | None = None
    before_end: int | None = None


EARLIEST = Start()
LATEST = Start(before_end=0)


def start(text: str) -> Start:
    """`N`, `earliest`, `latest`, or `-10` for the last ten."""
    if text in ("earliest", "beginning"):
        return EARLIEST
    if text in ("latest", "end"):
        return LATEST
    number = _natural(text.removeprefix("-"))
    if number is None:
        raise ValueError(f"{text!r} is none of N, earliest, latest and -N")
    return Start(before_end=number) if text.startswith("-") else Start(offset=number)


def moment_ms(text: str) -> int:
    """Milliseconds since 1970, or an ISO date and time; without a zone it is local."""
    if _natural(text) is not None:
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is neither a time such as 2026-05-01T12:00:00Z nor milliseconds since 1970"
        ) from None
    return int(moment.astimezone(UTC).timestamp() * 1_000)


def separator(text: str) -> bytes:
    """Text with the escapes for tab, newline, zero and backslash."""
    for escape, meant in _ESCAPES.items():
        text = text.replace(escape, meant)
    if not text:
        raise ValueError("it is empty")
    return text.encode()


def _natural(text: str) -> int | None:
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() else None
