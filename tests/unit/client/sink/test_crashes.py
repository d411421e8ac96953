"""A driver that dies at any request, and the next run: every record is published exactly once.

A crash comes before a request is carried out, or after it and before its answer is heard. Those are
all the moments there are, as far as a cluster can tell.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.sink.stage import Run, Stage
from tidelog.core.wire.messages.api_18_api_versions import ApiVersionsRequest
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest
from tidelog.core.wire.schema import Message

BATCHES = [{0: ["a0", "a1", "a2"], 1: ["a3"]}, {1: ["b0", "b1"]}, {}, {0: ["d0"]}]
EVERYTHING = ["a0", "a1", "a2", "a3", "b0", "b1", "d0"]


class Crash(Exception):
    """The process is gone."""


class Fuse:
    """Ends the process at the n-th request, before or after it is carried out."""

    def __init__(self, stage: Stage, *, at: int | None, is_carried_out: bool) -> None:
        self._stage = stage
        self._at = at
        self._is_carried_out = is_carried_out
        self.count = 0

    def __call__(self, broker_id: int, request: Any) -> Message | None:
        if isinstance(request, ApiVersionsRequest):
            return None
        self.count += 1
        if self.count != self._at:
            return None
        if self._is_carried_out:
            self._stage.coordinator.answer(broker_id, request)
        raise Crash


def replay(run: Run) -> None:
    """What a query does after it was started: from the first batch that it may not have done."""
    for batch_id, rows in enumerate(BATCHES):
        last = run.driver.published
        if last is None or batch_id >= last.batch_id:
            run.publish(batch_id, rows)


def requests_in_all() -> int:
    stage = Stage()
    fuse = Fuse(stage, at=None, is_carried_out=False)
    stage.cluster.rules.insert(0, fuse)
    replay(stage.run().take_over())
    assert stage.committed() == EVERYTHING
    return fuse.count


REQUESTS = requests_in_all()


@pytest.mark.parametrize("is_carried_out", [False, True], ids=["before", "after"])
@pytest.mark.parametrize(
    "delay", [0, pytest.param(3, marks=pytest.mark.long)], ids=["at once", "slowly"]
)
def test_a_crash_at_any_request_is_made_up_for(is_carried_out: bool, delay: int) -> None:
    """`delay`: the cluster takes its time to write the markers of a transaction."""
    assert REQUESTS > 40
    for at in range(1, REQUESTS + 1):
        stage = Stage()
        stage.coordinator.delay = delay
        fuse = Fuse(stage, at=at, is_carried_out=is_carried_out)
        stage.cluster.rules.insert(0, fuse)
        first = stage.run(name="A")
        try:
            replay(first.take_over())
        except Crash:
            first.stop()
        stage.cluster.rules.remove(fuse)

        replay(stage.run(name="B").take_over())

        stage.run(name="C").take_over()
        assert stage.committed() == EVERYTHING, at


def test_without_the_markers_word_a_replay_would_publish_twice() -> None:
    """A control: the same crash, and a driver that does not believe the marker."""
    stage = Stage()
    fuse = Fuse(stage, at=REQUESTS, is_carried_out=True)
    stage.cluster.rules.insert(0, fuse)
    first = stage.run(name="A")
    with pytest.raises(Crash):
        replay(first.take_over())
    first.stop()
    stage.cluster.rules.remove(fuse)
    assert isinstance(stage.cluster.seen[-1].request, EndTxnRequest)
    stage.coordinator.marker = None

    run = stage.run(name="B", resume_at=3).take_over()
    run.publish(3, BATCHES[3])

    assert stage.committed() == sorted([*EVERYTHING, "d0"])
