"""The marker: what a sink remembers, as one committed offset of its group.

The offset is the id of the batch that was published last, for whoever looks with Kafka's own tools.
What counts is the text beside it: who runs the sink, which query published, which batch, and from
which source offsets. A sink that was claimed and has published nothing has a marker without batch.
`judge` says what a marker means for the batch that is offered.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from tidelog.client.sink.errors import (
    CheckpointAhead,
    CheckpointForeign,
    CheckpointRolledBack,
    ForeignRun,
    MarkerMissing,
    MarkerUnreadable,
)
from tidelog.core.model.ids import TopicPartition

FORMAT = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchIdentity:
    """One batch that is in the topics."""

    query_id: str
    batch_id: int
    source_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkMarker:
    """Who runs the sink, and what it published last."""

    run_id: str
    published: BatchIdentity | None = None

    def of_run(self, run_id: str) -> SinkMarker:
        """The same memory under another owner."""
        return replace(self, run_id=run_id)

    @property
    def offset(self) -> int:
        return 0 if self.published is None else self.published.batch_id

    @property
    def text(self) -> str:
        fields: dict[str, Any] = {"format": FORMAT, "run": self.run_id}
        if self.published is not None:
            fields["query"] = self.published.query_id
            fields["batch"] = self.published.batch_id
            fields["source"] = self.published.source_hash
        return json.dumps(fields, separators=(",", ":"))


def read_marker(partition: TopicPartition, offset: int, text: str | None) -> SinkMarker:
    """The marker behind a committed offset; MarkerUnreadable if it is none."""
    try:
        fields = json.loads(text or "")
        if fields["format"] != FORMAT:
            raise MarkerUnreadable(f"the marker at {partition} has format {fields['format']!r}")
        marker = SinkMarker(run_id=_text(fields, "run"), published=_published(fields))
    except (ValueError, KeyError, TypeError):
        raise MarkerUnreadable(
            f"the sink's group has an offset of {partition} that is no marker: {text!r}"
        ) from None
    if marker.offset != offset:
        raise MarkerUnreadable(
            f"the marker at {partition} says {marker.offset} and stands at {offset}"
        )
    return marker


def _published(fields: dict[str, Any]) -> BatchIdentity | None:
    if "batch" not in fields:
        return None
    batch_id = fields["batch"]
    if not isinstance(batch_id, int) or batch_id < 0:
        raise ValueError(batch_id)
    return BatchIdentity(
        query_id=_text(fields, "query"), batch_id=batch_id, source_hash=_text(fields, "source")
    )


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields[name]
    if not isinstance(value, str):
        raise TypeError(name)
    return value


class PublishDecision(Enum):
    """What to do with a batch that belongs here."""

    PUBLISH = "publish"
    ALREADY_PUBLISHED = "already published"


def judge(
    marker: SinkMarker | None,
    offered: BatchIdentity,
    *,
    run_id: str,
    group: str,
    resume_at: int | None = None,
) -> PublishDecision:
    """What this marker means for a batch: publish it, skip it, or stop with what to do.

    A checkpoint is known by the query id that Spark keeps in it. A replay offers the same batch id
    with the same source offsets. Everything else is a mistake of people, and each has its own
    sentence.

    `resume_at` is what the operator says of a sink that lost its marker: everything before that
    batch counts as published.
    """
    published = check_owner(marker, run_id=run_id, group=group)
    check_query(marker, offered.query_id, group=group)
    if published is None:
        return _judge_first(offered.batch_id, group=group, resume_at=resume_at)
    return _judge_next(published, offered, group=group)


def check_owner(marker: SinkMarker | None, *, run_id: str, group: str) -> BatchIdentity | None:
    """What our own marker says was published last; ForeignRun if it is not ours any more."""
    if marker is None:
        raise MarkerMissing(
            f"the marker of {group} vanished while this query ran: the group was deleted, or the"
            f" topic that it stands at. Start the query again: it will say what to do"
        )
    if marker.run_id != run_id:
        raise ForeignRun(
            f"{group} was taken over by another run ({marker.run_id}); this one ({run_id}) stops"
        )
    return marker.published


def _judge_first(batch_id: int, *, group: str, resume_at: int | None) -> PublishDecision:
    first = 0 if resume_at is None else resume_at
    if batch_id == first:
        return PublishDecision.PUBLISH
    if resume_at is not None and batch_id == resume_at - 1:
        return PublishDecision.ALREADY_PUBLISHED
    raise MarkerMissing(
        f"batch {batch_id} is offered, and {group} remembers no batch: its marker expired"
        f" (offsets.retention.minutes) or was deleted, or the checkpoint belongs to another sink or"
        f" cluster. {_ways_out(batch_id)}"
    )


def check_query(marker: SinkMarker | None, query_id: str, *, group: str) -> None:
    """CheckpointForeign if a query with another checkpoint published here."""
    last = marker.published if marker is not None else None
    if last is not None and last.query_id != query_id:
        raise CheckpointForeign(
            f"{group} published batch {last.batch_id} last, for a query with another checkpoint"
            f" ({last.query_id}, and this one is {query_id}). Start the query on its old"
            f" checkpoint, or give it a sink id of its own; to begin again under this one, delete"
            f" the group {group}"
        )


def _judge_next(last: BatchIdentity, offered: BatchIdentity, *, group: str) -> PublishDecision:
    known = f"{group} published batch {last.batch_id} last, and batch {offered.batch_id} is offered"
    if offered.batch_id == last.batch_id + 1:
        return PublishDecision.PUBLISH
    if offered == last:
        return PublishDecision.ALREADY_PUBLISHED
    if offered.batch_id == last.batch_id:
        raise CheckpointRolledBack(
            f"{known} again from other source offsets: the checkpoint was rolled back or edited."
            f" Bring the newer checkpoint back, or give the query a sink id of its own"
        )
    if offered.batch_id < last.batch_id:
        raise CheckpointRolledBack(
            f"{known}: the checkpoint was rolled back, and its batches would be published twice."
            f" Bring the newer checkpoint back, or give the query a sink id of its own"
        )
    raise CheckpointAhead(
        f"{known}: batches {last.batch_id + 1} to {offered.batch_id - 1} were never published here."
        f" The checkpoint is from another cluster, or the cluster lost its offsets"
    )


def _ways_out(batch_id: int) -> str:
    return (
        f"Look into the topics: if batch {batch_id} is not there, start once with"
        f" resume_at={batch_id}; if it is, with resume_at={batch_id + 1}"
    )
