"""The marker as an offset and a text, and back."""

from __future__ import annotations

import json

import pytest

from tidelog.client.sink.errors import MarkerUnreadable
from tidelog.client.sink.marker import BatchIdentity, SinkMarker, read_marker
from tidelog.core.model.ids import TopicPartition

PLACE = TopicPartition("out", 0)
LAST = BatchIdentity(query_id="q", batch_id=7, source_hash="abc")


@pytest.mark.parametrize("published", [None, LAST], ids=["claimed", "published"])
def test_a_marker_is_read_as_it_was_written(published: BatchIdentity | None) -> None:
    marker = SinkMarker(run_id="r", published=published)

    assert read_marker(PLACE, marker.offset, marker.text) == marker


def test_the_offset_is_the_batch_for_whoever_looks_with_kafkas_tools() -> None:
    assert SinkMarker(run_id="r", published=LAST).offset == 7


def test_another_run_keeps_what_was_published() -> None:
    taken = SinkMarker(run_id="r", published=LAST).of_run("s")

    assert taken == SinkMarker(run_id="s", published=LAST)


def text(**changes: object) -> str:
    told = {"format": 1, "run": "r", "query": "q", "batch": 7, "source": "abc", **changes}
    return json.dumps({name: value for name, value in told.items() if value is not None})


@pytest.mark.parametrize(
    ("offset", "told"),
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
def test_an_offset_that_no_sink_wrote_is_refused(offset: int, told: str | None) -> None:
    with pytest.raises(MarkerUnreadable, match="out-0"):
        read_marker(PLACE, offset, told)
