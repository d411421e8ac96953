"""Two records of one conversation, compared field by field; each difference has a readable path.

A list of things with names is compared by name, so that one missing entry is one difference and
not a shift of all that follow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

ABSENT = "<absent>"
NAMING_FIELDS = (
    "api_key",
    "group_id",
    "member_id",
    "transactional_id",
    "name",
    "topic",
    "topic_name",
    "topic_id",
    "resource_name",
    "broker_id",
    "node_id",
    "replica_id",
    "feature",
    "index",
    "partition_index",
    "partition",
    "partition_id",
    "base_offset",
    "offset",
    "producer_id",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One field in which two answers differ."""

    case: str
    path: str
    kafka: Any
    tidelog: Any

    def __str__(self) -> str:
        return f"{self.case}: {self.path}: Kafka {self.kafka!r}, Tidelog {self.tidelog!r}"


def differences(case: str, kafka: Any, tidelog: Any) -> list[Difference]:
    """Every place where the two records of this case are not equal."""
    return [
        Difference(case=case, path=path, kafka=theirs, tidelog=ours)
        for path, theirs, ours in _walk("", kafka, tidelog)
    ]


def _walk(path: str, kafka: Any, tidelog: Any) -> Iterator[tuple[str, Any, Any]]:
    if kafka == tidelog:
        return
    if isinstance(kafka, list) and isinstance(tidelog, list):
        kafka, tidelog = _named(kafka), _named(tidelog)
    if not (isinstance(kafka, dict) and isinstance(tidelog, dict)):
        yield path, kafka, tidelog
        return
    for key in [*kafka, *(key for key in tidelog if key not in kafka)]:
        inner = f"{path}/{key}" if path else str(key)
        yield from _walk(inner, kafka.get(key, ABSENT), tidelog.get(key, ABSENT))


def _named(items: list[Any]) -> dict[str, Any]:
    """By the first naming field that tells them all apart, else by position."""
    for field in NAMING_FIELDS:
        if all(isinstance(item, dict) and field in item for item in items):
            names = [f"{field}={item[field]}" for item in items]
            if len(set(names)) == len(names):
                return dict(zip(names, items, strict=True))
    return {str(position): item for position, item in enumerate(items)}
