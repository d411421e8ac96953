"""Offsets of many partitions as Spark keeps them: `{"orders": {"0": 23, "1": 345}}`.

A stream's first batch also says where it began, because Spark writes only its end to the checkpoint
and would ask for the beginning again after a crash, when `latest` is somewhere else::

    {"orders": {"0": 23}, "(from)": {"orders": {"0": 17}}}

Spark's Kafka source keeps that in a file of its own, which a source in Python does not get.

Lag, how far a stream is behind its topics, comes from the progress that Spark reports: the end
offsets of the last batch next to the latest ones that there were::

    query = df.writeStream.start()
    lag(query.lastProgress.sources[0])          # {TopicPartition("orders", 0): 17, ...}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tidelog.core.model.ids import TopicPartition

Positions = dict[TopicPartition, int]
"""The next offset to be read, by partition."""
FROM = "(from)"
"""No topic can have this name."""


def to_json(positions: Mapping[TopicPartition, int], *, start: Positions | None = None) -> Any:
    """Sorted, so that equal positions have equal JSON, which Spark compares."""
    document: dict[str, dict[str, Any]] = {}
    for partition in sorted(positions):
        document.setdefault(partition.topic, {})[str(partition.index)] = positions[partition]
    if start is not None:
        document[FROM] = to_json(start)
    return document


def from_json(document: Mapping[str, Mapping[str, Any]]) -> Positions:
    return {
        TopicPartition(topic, int(index)): int(offset)
        for topic, by_index in document.items()
        if topic != FROM
        for index, offset in by_index.items()
    }


def start_in(document: Mapping[str, Mapping[str, Any]]) -> Positions | None:
    """Where a stream began, if this is the end of its first batch."""
    return from_json(document[FROM]) if FROM in document else None


def lag(source: Any) -> dict[TopicPartition, int]:
    """Offsets not yet read, by partition; empty before the first batch.

    `source` is one of `progress.sources`, or its JSON object. A partition that no batch has reached
    yet is left out.
    """
    end, latest = (_positions(source, name) for name in ("endOffset", "latestOffset"))
    return {each: max(0, latest[each] - end[each]) for each in sorted(latest) if each in end}


def _positions(source: Any, name: str) -> dict[TopicPartition, int]:
    document = source.get(name) if isinstance(source, dict) else getattr(source, name)
    if isinstance(document, str):
        document = json.loads(document)
    return from_json(document) if isinstance(document, dict) else {}
