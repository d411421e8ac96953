"""The marker: what a sink remembers, and what that means for the batch that is offered."""

from __future__ import annotations

import json

import pytest

from tidelog.client.sink.errors import (
    CheckpointAhead,
    CheckpointForeign,
    CheckpointRolledBack,
    ForeignRun,
    MarkerMissing,
    MarkerUnreadable,
    SinkError,
)
from tidelog.client.sink.marker import (
    BatchIdentity,
    PublishDecision,
    SinkMarker,
    judge,
    read_marker,
)
from tidelog.core.model.ids import TopicPartition

PARTITION = TopicPartition("out", 0)
LAST = BatchIdentity(query_id="q", batch_id=7, source_hash="abc")


@pytest.mark.parametrize("published", [None, LAST], ids=["claimed", "published"])
def test_a_marker_is_read_as_it_was_written(published: BatchIdentity | None) -> None:
    marker = SinkMarker(run_id="r", published=published)

    assert read_marker(PARTITION, marker.offset, marker.text) == marker


def test_the_offset_is_the_batch_for_whoever_looks_with_kafkas_tools() -> None:
    assert SinkMarker(run_id="r", published=LAST).offset == 7


def test_another_run_keeps_what_was_published() -> None:
    taken = SinkMarker(run_id="r", published=LAST).of_run("s")

    assert taken == SinkMarker(run_id="s", published=LAST)


def text(**changes: object) -> str:
    fields = {"format": 1, "run": "r", "query": "q", "batch": 7, "source": "abc", **changes}
    return json.dumps({name: value for name, value in fields.items() if value is not None})


@pytest.mark.parametrize(
    ("offset", "metadata"),
    [
        (7, ""),
        (7, None),
        (7, "by a consumer"),
        (7, "[1]"),
        (7, text(format=2)),
        (7, text(format=None)),
        (7, text(run=None)),
        (7, text(run=5)),
        (7, text(query=None)),
        (7, text(source=None)),
        (7, text(batch="7")),
        (-7, text(batch=-7)),
        (8, text()),
    ],
)
def test_an_offset_that_no_sink_wrote_is_refused(offset: int, metadata: str | None) -> None:
    with pytest.raises(MarkerUnreadable, match="out-0"):
        read_marker(PARTITION, offset, metadata)


PUBLISH, SKIP = PublishDecision.PUBLISH, PublishDecision.ALREADY_PUBLISHED


def batch(batch_id: int, *, query: str = "q", source: str | None = None) -> BatchIdentity:
    return BatchIdentity(query_id=query, batch_id=batch_id, source_hash=source or f"s{batch_id}")


CLAIMED = SinkMarker(run_id="mine")
AT_7 = SinkMarker(run_id="mine", published=batch(7))


@pytest.mark.parametrize(
    ("marker", "offered", "resume_at", "expected"),
    [
        (CLAIMED, batch(0), None, PUBLISH),
        (CLAIMED, batch(5), 5, PUBLISH),
        (CLAIMED, batch(4), 5, SKIP),
        (AT_7, batch(8), None, PUBLISH),
        (AT_7, batch(7), None, SKIP),
        (AT_7, batch(8), 99, PUBLISH),
    ],
)
def test_what_belongs_here_is_published_once(
    marker: SinkMarker, offered: BatchIdentity, resume_at: int | None, expected: PublishDecision
) -> None:
    assert judge(marker, offered, run_id="mine", group="g", resume_at=resume_at) == expected


@pytest.mark.parametrize(
    ("marker", "offered", "resume_at", "error", "sentence"),
    [
        (None, batch(0), None, MarkerMissing, "vanished while this query ran"),
        (CLAIMED, batch(5), None, MarkerMissing, "resume_at=5; if it is, with resume_at=6"),
        (CLAIMED, batch(3), 5, MarkerMissing, "remembers no batch"),
        (CLAIMED, batch(6), 5, MarkerMissing, "remembers no batch"),
        (AT_7.of_run("other"), batch(8), None, ForeignRun, "taken over by another run .other"),
        (AT_7.of_run("other"), batch(7), None, ForeignRun, "this one .mine. stops"),
        (AT_7, batch(8, query="p"), None, CheckpointForeign, "delete the group g"),
        (AT_7, batch(7, query="p"), None, CheckpointForeign, "another checkpoint"),
        (AT_7, batch(0, query="p"), None, CheckpointForeign, "a sink id of its own"),
        (AT_7, batch(7, source="t"), None, CheckpointRolledBack, "from other source offsets"),
        (AT_7, batch(6), None, CheckpointRolledBack, "published twice"),
        (AT_7, batch(0), None, CheckpointRolledBack, "Bring the newer checkpoint back"),
        (AT_7, batch(9), None, CheckpointAhead, "batches 8 to 8 were never published"),
    ],
)
def test_what_does_not_belong_here_is_refused_with_what_to_do(
    marker: SinkMarker | None,
    offered: BatchIdentity,
    resume_at: int | None,
    error: type[SinkError],
    sentence: str,
) -> None:
    with pytest.raises(error, match=sentence):
        judge(marker, offered, run_id="mine", group="g", resume_at=resume_at)
