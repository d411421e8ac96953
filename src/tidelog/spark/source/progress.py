"""Lag: how far behind the topics a stream is, from the progress that Spark reports.

Spark shows, for every source of a query, the end offsets of the last batch next to the latest ones
that there were. Sources in Python cannot report numbers of their own, so the difference is taken
here::

    query = df.writeStream.start()
    lag(query.lastProgress.sources[0])          # {TopicPartition("orders", 0): 17, ...}
"""

from __future__ import annotations

import json
from typing import Any

from tidelog.core.model.ids import TopicPartition
from tidelog.spark.source.offsets import from_json


def lag(source: Any) -> dict[TopicPartition, int]:
    """Offsets not yet read, by partition; empty before the first batch.

    `source` is one of `progress.sources`, or its JSON object. A partition that no batch has reached
    yet is left out.
    """
    end, latest = (_positions(source, name) for name in ("endOffset", "latestOffset"))
    return {each: max(0, latest[each] - end[each]) for each in sorted(latest) if each in end}


def _positions(source: Any, name: str) -> dict[TopicPartition, int]:
    told = source.get(name) if isinstance(source, dict) else getattr(source, name)
    if isinstance(told, str):
        told = json.loads(told)
    return from_json(told) if isinstance(told, dict) else {}
