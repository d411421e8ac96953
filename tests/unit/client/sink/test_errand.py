"""Batches of drivers that remember nothing: published once, all or nothing, or known not to be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fake_cluster import Close, once
from tests.unit.client.sink.stage import QUERY, ROWS, TOPIC, Run, Stage
from tidelog.client.sink.conversation import Steps
from tidelog.client.sink.errand import (
    Outcome,
    abandon,
    open_batch,
    publish_alone,
    publish_numbered,
)
from tidelog.client.sink.errors import (
    CheckpointForeign,
    CheckpointRolledBack,
    CommitUnknown,
    Fenced,
    GuardFailed,
    MarkerMissing,
    SinkError,
)
from tidelog.client.sink.marker import Published
from tidelog.client.sink.values import Begun, Receipt
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest

EVERYTHING = ["a", "b", "c", "d"]


class Errands:
    """Each step is done by somebody else, as Spark does it."""

    def __init__(self) -> None:
        self.stage = Stage()

    def somebody(self) -> Run:
        return self.stage.run(name="nobody in particular")

    def open(self) -> Begun:
        run = self.somebody()
        steps = open_batch(run.plan.name, (TOPIC,), transaction_timeout_ms=None)
        return run.lead(steps)

    def lead(self, steps: Steps[Outcome]) -> Outcome:
        return self.somebody().lead(steps)

    def publish(self, batch_id: int, rows: Any = ROWS, *, query: str = QUERY) -> Outcome:
        begun = self.open()
        return self.close(begun, self.stage.write(begun, rows), batch_id, query=query)

    def close(
        self, begun: Begun, receipts: list[Receipt], batch_id: int, *, query: str = QUERY
    ) -> Outcome:
        offered = Published(query_id=query, batch_id=batch_id, source_hash="unknown")
        return self.lead(publish_numbered(begun, receipts, offered, run_id="run-1"))


def lose_commit(stage: Stage, *, is_carried_out: bool) -> None:
    def rule(broker_id: int, request: Any) -> Any:
        if not isinstance(request, EndTxnRequest) or not request.committed:
            return None
        if is_carried_out:
            stage.coordinator.answer(broker_id, request)
        return Close()

    stage.cluster.rules.insert(0, once(rule))


def test_batches_are_published_and_a_replay_is_found_at_the_end() -> None:
    errands = Errands()

    assert errands.publish(0) is Outcome.PUBLISHED
    assert errands.publish(0) is Outcome.ALREADY_PUBLISHED
    assert errands.publish(1, {0: ["e"]}) is Outcome.PUBLISHED

    assert errands.stage.committed() == [*EVERYTHING, "e"]


@pytest.mark.parametrize(
    ("batch_id", "query", "error"),
    [
        (0, "another", CheckpointForeign),
        (0, QUERY, CheckpointRolledBack),
    ],
)
def test_a_checkpoint_that_does_not_belong_here_is_refused(
    batch_id: int, query: str, error: type[SinkError]
) -> None:
    errands = Errands()
    errands.publish(0)
    errands.publish(1, {0: ["e"]})

    with pytest.raises(error):
        errands.publish(batch_id, {0: ["wrong"]}, query=query)

    assert errands.stage.committed() == [*EVERYTHING, "e"]


def test_a_later_batch_without_a_marker_is_refused() -> None:
    errands = Errands()

    with pytest.raises(MarkerMissing):
        errands.publish(3)

    assert errands.stage.committed() == []


def test_whoever_opens_a_batch_fences_the_one_before() -> None:
    errands = Errands()
    begun = errands.open()
    receipts = errands.stage.write(begun, {0: ["zombie"]})

    assert errands.publish(0) is Outcome.PUBLISHED

    with pytest.raises((Fenced, CheckpointRolledBack, SinkError)):
        errands.close(begun, receipts, 1)
    assert errands.stage.committed() == EVERYTHING


def test_guards_refuse_and_abort() -> None:
    errands = Errands()
    begun = errands.open()
    receipts = errands.stage.write(begun, {0: ["x"]})

    with pytest.raises(GuardFailed, match="two receipts"):
        errands.close(begun, [*receipts, *receipts], 0)

    assert errands.stage.coordinator.state == "CompleteAbort"


def test_a_frame_is_written_all_or_nothing() -> None:
    errands = Errands()
    begun = errands.open()
    receipts = errands.stage.write(begun, ROWS)
    assert errands.stage.committed() == []

    assert errands.lead(publish_alone(begun, receipts)) is Outcome.PUBLISHED

    assert errands.stage.committed() == EVERYTHING
    assert errands.stage.coordinator.marker is None


def test_a_frame_without_rows_is_nothing() -> None:
    errands = Errands()

    assert errands.lead(publish_alone(errands.open(), [])) is Outcome.PUBLISHED


@pytest.mark.parametrize("is_carried_out", [True, False])
def test_a_commit_without_an_answer_is_asked_for_again(is_carried_out: bool) -> None:
    errands = Errands()
    begun = errands.open()
    receipts = errands.stage.write(begun, ROWS)
    lose_commit(errands.stage, is_carried_out=is_carried_out)

    assert errands.lead(publish_alone(begun, receipts)) is Outcome.PUBLISHED

    assert errands.stage.committed() == EVERYTHING


def test_a_commit_that_somebody_else_may_have_ended_is_unknown() -> None:
    errands = Errands()
    begun = errands.open()
    receipts = errands.stage.write(begun, ROWS)

    def overtake(_: int, request: Any) -> Any:
        if isinstance(request, EndTxnRequest) and request.committed:
            errands.stage.coordinator.fence()
        return None

    errands.stage.cluster.rules.insert(0, once(overtake))

    with pytest.raises(CommitUnknown):
        errands.lead(publish_alone(begun, receipts))

    assert errands.stage.committed() == []


def test_an_abandoned_batch_is_never_seen() -> None:
    errands = Errands()
    begun = errands.open()
    errands.stage.write(begun, ROWS)

    assert errands.somebody().lead(abandon(begun))

    assert errands.stage.committed() == []
