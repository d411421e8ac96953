"""Offsets of many partitions as Spark keeps them: `{"orders": {"0": 23, "1": 345}}`.

A stream's first batch also says where it began, because Spark writes only its end to the checkpoint
and would ask for the beginning again after a crash, when `latest` is somewhere else::

    {"orders": {"0": 23}, "(from)": {"orders": {"0": 17}}}

Spark's Kafka source keeps that in a file of its own, which a source in Python does not get.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidelog.core.model.ids import TopicPartition

Positions = dict[TopicPartition, int]
"""The next offset to be read, by partition."""
FROM = "(from)"
"""No topic can be called so."""


def to_json(positions: Mapping[TopicPartition, int], *, start: Positions | None = None) -> Any:
    """Sorted, so that equal positions are equal texts, by which Spark compares them."""
    told: dict[str, dict[str, Any]] = {}
    for partition in sorted(positions):
        told.setdefault(partition.topic, {})[str(partition.index)] = positions[partition]
    if start is not None:
        told[FROM] = to_json(start)
    return told


def from_json(told: Mapping[str, Mapping[str, Any]]) -> Positions:
    return {
        TopicPartition(topic, int(index)): int(offset)
        for topic, by_index in told.items()
        if topic != FROM
        for index, offset in by_index.items()
    }


def start_in(told: Mapping[str, Mapping[str, Any]]) -> Positions | None:
    """Where a stream began, if this is the end of its first batch."""
    return from_json(told[FROM]) if FROM in told else None
