"""What a marker means for the batch that is offered: publish it, skip it, or stop loudly.

A checkpoint is known by the query id that Spark keeps in it. A replay offers the same batch id with
the same source offsets. Everything else is a mistake of people, and each has its own sentence.
"""

from __future__ import annotations

from enum import Enum

from tidelog.client.sink.errors import (
    CheckpointAhead,
    CheckpointForeign,
    CheckpointRolledBack,
    ForeignRun,
    MarkerMissing,
)
from tidelog.client.sink.marker import Marker, Published


class Verdict(Enum):
    """What to do with a batch that belongs here."""

    PUBLISH = "publish"
    ALREADY_PUBLISHED = "already published"


def judge(
    marker: Marker | None,
    offered: Published,
    *,
    run_id: str,
    group: str,
    resume_at: int | None = None,
) -> Verdict:
    """The verdict, or the refusal with what to do.

    `resume_at` is the operator's word for a sink that lost its marker: everything before that batch
    counts as published.
    """
    published = check_owner(marker, run_id=run_id, group=group)
    check_query(marker, offered.query_id, group=group)
    if published is None:
        return _judge_first(offered.batch_id, group=group, resume_at=resume_at)
    return _judge_next(published, offered, group=group)


def check_owner(marker: Marker | None, *, run_id: str, group: str) -> Published | None:
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


def _judge_first(batch_id: int, *, group: str, resume_at: int | None) -> Verdict:
    first = 0 if resume_at is None else resume_at
    if batch_id == first:
        return Verdict.PUBLISH
    if resume_at is not None and batch_id == resume_at - 1:
        return Verdict.ALREADY_PUBLISHED
    raise MarkerMissing(
        f"batch {batch_id} is offered, and {group} remembers no batch: its marker expired"
        f" (offsets.retention.minutes) or was deleted, or the checkpoint belongs to another sink or"
        f" cluster. {_ways_out(batch_id)}"
    )


def check_query(marker: Marker | None, query_id: str, *, group: str) -> None:
    """CheckpointForeign if a query with another checkpoint published here."""
    last = marker.published if marker is not None else None
    if last is not None and last.query_id != query_id:
        raise CheckpointForeign(
            f"{group} published batch {last.batch_id} last, for a query with another checkpoint"
            f" ({last.query_id}, and this one is {query_id}). Start the query on its old"
            f" checkpoint, or give it a sink id of its own; to begin again under this one, delete"
            f" the group {group}"
        )


def _judge_next(last: Published, offered: Published, *, group: str) -> Verdict:
    told = f"{group} published batch {last.batch_id} last, and batch {offered.batch_id} is offered"
    if offered.batch_id == last.batch_id + 1:
        return Verdict.PUBLISH
    if offered == last:
        return Verdict.ALREADY_PUBLISHED
    if offered.batch_id == last.batch_id:
        raise CheckpointRolledBack(
            f"{told} again from other source offsets: the checkpoint was rolled back or edited."
            f" Bring the newer checkpoint back, or give the query a sink id of its own"
        )
    if offered.batch_id < last.batch_id:
        raise CheckpointRolledBack(
            f"{told}: the checkpoint was rolled back, and its batches would be published twice."
            f" Bring the newer checkpoint back, or give the query a sink id of its own"
        )
    raise CheckpointAhead(
        f"{told}: batches {last.batch_id + 1} to {offered.batch_id - 1} were never published here."
        f" The checkpoint is from another cluster, or the cluster lost its offsets"
    )


def _ways_out(batch_id: int) -> str:
    return (
        f"Look into the topics: if batch {batch_id} is not there, start once with"
        f" resume_at={batch_id}; if it is, with resume_at={batch_id + 1}"
    )
