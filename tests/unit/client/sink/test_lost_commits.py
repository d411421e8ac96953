"""Commits whose answers are lost: asked for again, found in the marker, or unknown."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fake_cluster import Close, once
from tests.unit.client.sink.stage import ROWS, Stage
from tidelog.client.events import BatchCommitted
from tidelog.client.sink.errors import (
    CommitUnknown,
    Fenced,
    ForeignRun,
)
from tidelog.client.sink.values import AlreadyPublished
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest


def lose_commit(stage: Stage, *, is_carried_out: bool) -> None:
    """The next commit is not answered."""

    def rule(broker_id: int, request: Any) -> Any:
        if not isinstance(request, EndTxnRequest) or not request.committed:
            return None
        if is_carried_out:
            stage.coordinator.answer(broker_id, request)
        return Close()

    stage.cluster.rules.insert(0, once(rule))


def reach_commit(stage: Stage) -> None:
    stage.cluster.clock.run_until(lambda: isinstance(stage.cluster.seen[-1].request, EndTxnRequest))


@pytest.mark.parametrize("is_carried_out", [True, False])
def test_a_commit_without_an_answer_is_asked_for_again(is_carried_out: bool) -> None:
    stage = Stage()
    run = stage.run().take_over()
    receipts = run.write(run.ticket(0), ROWS)
    lose_commit(stage, is_carried_out=is_carried_out)

    run.commit(receipts)

    assert stage.committed() == ["a", "b", "c", "d"]
    assert run.publish(1, {0: ["e"]})


def test_a_commit_that_was_carried_out_before_a_takeover_is_found_in_the_marker() -> None:
    """The answer is lost, B takes over, and A's second question is refused: still published."""
    stage = Stage()
    first = stage.run(name="A").take_over()
    receipts = first.write(first.ticket(0), ROWS)
    lose_commit(stage, is_carried_out=True)
    ends = first.start(first.driver.commit(receipts, now_ms=first.host.now_ms))
    reach_commit(stage)
    first.host.freeze()
    second = stage.run(name="B").take_over()

    first.host.thaw()
    stage.cluster.clock.run_until(lambda: ends)

    assert ends == [None]
    assert first.host.trace.of(BatchCommitted)[0].by_marker
    assert second.begin(0) == AlreadyPublished(batch_id=0)
    with pytest.raises(ForeignRun):
        first.begin(1)


def test_a_commit_that_never_arrived_before_a_takeover_is_known_not_to_be() -> None:
    stage = Stage()
    first = stage.run(name="A").take_over()
    receipts = first.write(first.ticket(0), {0: ["zombie"]})
    lose_commit(stage, is_carried_out=False)
    ends = first.start(first.driver.commit(receipts, now_ms=first.host.now_ms))
    reach_commit(stage)
    first.host.freeze()
    second = stage.run(name="B").take_over()

    first.host.thaw()
    stage.cluster.clock.run_until(lambda: ends)

    assert isinstance(ends[0], Fenced)
    assert second.publish(0, ROWS)
    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_commit_that_nobody_can_tell_about_is_unknown_and_never_failed() -> None:
    stage = Stage()
    run = stage.run(name="A").take_over()
    receipts = run.write(run.ticket(0), ROWS)
    lose_commit(stage, is_carried_out=True)
    ends = run.start(run.driver.commit(receipts, now_ms=run.host.now_ms))
    reach_commit(stage)
    for broker_id in (1, 2, 3):
        stage.cluster.kill(broker_id)

    stage.cluster.clock.run_until(lambda: ends)

    assert isinstance(ends[0], CommitUnknown)
    with pytest.raises(CommitUnknown):
        run.begin(0)
    for broker_id in (1, 2, 3):
        stage.cluster.start(broker_id)
    assert stage.run(name="B").take_over().begin(0) == AlreadyPublished(batch_id=0)
