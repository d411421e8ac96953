"""The marker: what a sink remembers, as one committed offset of its group.

The offset is the id of the batch that was published last, for whoever looks with Kafka's own tools.
What counts is the text beside it: who runs the sink, which query published, which batch, and from
which source offsets. A sink that was claimed and has published nothing has a marker without batch.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from tidelog.client.sink.errors import MarkerUnreadable
from tidelog.core.model.ids import TopicPartition

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One batch that is in the topics."""

    query_id: str
    batch_id: int
    source_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Marker:
    """Who runs the sink, and what it published last."""

    run_id: str
    published: Published | None = None

    def of_run(self, run_id: str) -> Marker:
        """The same memory under another owner."""
        return replace(self, run_id=run_id)

    @property
    def offset(self) -> int:
        return 0 if self.published is None else self.published.batch_id

    @property
    def text(self) -> str:
        told: dict[str, Any] = {"format": FORMAT, "run": self.run_id}
        if self.published is not None:
            told["query"] = self.published.query_id
            told["batch"] = self.published.batch_id
            told["source"] = self.published.source_hash
        return json.dumps(told, separators=(",", ":"))


def read_marker(place: TopicPartition, offset: int, text: str | None) -> Marker:
    """The marker behind a committed offset; MarkerUnreadable if it is none."""
    try:
        told = json.loads(text or "")
        if told["format"] != FORMAT:
            raise MarkerUnreadable(f"the marker at {place} has format {told['format']!r}")
        marker = Marker(run_id=_text(told, "run"), published=_published(told))
    except (ValueError, KeyError, TypeError):
        raise MarkerUnreadable(
            f"the sink's group has an offset of {place} that is no marker: {text!r}"
        ) from None
    if marker.offset != offset:
        raise MarkerUnreadable(f"the marker at {place} says {marker.offset} and stands at {offset}")
    return marker


def _published(told: dict[str, Any]) -> Published | None:
    if "batch" not in told:
        return None
    batch_id = told["batch"]
    if not isinstance(batch_id, int) or batch_id < 0:
        raise ValueError(batch_id)
    return Published(
        query_id=_text(told, "query"), batch_id=batch_id, source_hash=_text(told, "source")
    )


def _text(told: dict[str, Any], name: str) -> str:
    value = told[name]
    if not isinstance(value, str):
        raise TypeError(name)
    return value
