"""Batches of drivers that remember nothing: published once, all or nothing, or known not to be."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fake_cluster import Close, once
from tests.unit.client.sink.stage import QUERY, ROWS, TOPIC, Run, Stage
from tidelog.client.sink.conversation import Steps
from tidelog.client.sink.errors import (
    CheckpointForeign,
    CheckpointRolledBack,
    CommitUnknown,
    Fenced,
    GuardFailed,
    MarkerMissing,
    SinkError,
)
from tidelog.client.sink.marker import BatchIdentity
from tidelog.client.sink.stateless_driver import (
    PublishOutcome,
    abandon,
    open_batch,
    publish_alone,
    publish_numbered,
)
from tidelog.client.sink.values import BatchTicket, Receipt
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest

EVERYTHING = ["a", "b", "c", "d"]


class StatelessRuns:
    """Each step is done by somebody else, as Spark does it."""

    def __init__(self) -> None:
        self.stage = Stage()

    def somebody(self) -> Run:
        return self.stage.run(name="nobody in particular")

    def open(self) -> BatchTicket:
        run = self.somebody()
        steps = open_batch(run.options.group, (TOPIC,), transaction_timeout_ms=None)
        return run.lead(steps)

    def lead(self, steps: Steps[PublishOutcome]) -> PublishOutcome:
        return self.somebody().lead(steps)

    def publish(self, batch_id: int, rows: Any = ROWS, *, query: str = QUERY) -> PublishOutcome:
        ticket = self.open()
        return self.close(ticket, self.stage.write(ticket, rows), batch_id, query=query)

    def close(
        self, ticket: BatchTicket, receipts: list[Receipt], batch_id: int, *, query: str = QUERY
    ) -> PublishOutcome:
        offered = BatchIdentity(query_id=query, batch_id=batch_id, source_hash="unknown")
        return self.lead(publish_numbered(ticket, receipts, offered, run_id="run-1"))


def lose_commit(stage: Stage, *, is_carried_out: bool) -> None:
    def rule(broker_id: int, request: Any) -> Any:
        if not isinstance(request, EndTxnRequest) or not request.committed:
            return None
        if is_carried_out:
            stage.coordinator.answer(broker_id, request)
        return Close()

    stage.cluster.rules.insert(0, once(rule))


def test_batches_are_published_and_a_replay_is_found_at_the_end() -> None:
    runs = StatelessRuns()

    assert runs.publish(0) is PublishOutcome.PUBLISHED
    assert runs.publish(0) is PublishOutcome.ALREADY_PUBLISHED
    assert runs.publish(1, {0: ["e"]}) is PublishOutcome.PUBLISHED

    assert runs.stage.committed() == [*EVERYTHING, "e"]


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
    runs = StatelessRuns()
    runs.publish(0)
    runs.publish(1, {0: ["e"]})

    with pytest.raises(error):
        runs.publish(batch_id, {0: ["wrong"]}, query=query)

    assert runs.stage.committed() == [*EVERYTHING, "e"]


def test_a_later_batch_without_a_marker_is_refused() -> None:
    runs = StatelessRuns()

    with pytest.raises(MarkerMissing):
        runs.publish(3)

    assert runs.stage.committed() == []


def test_whoever_opens_a_batch_fences_the_one_before() -> None:
    runs = StatelessRuns()
    ticket = runs.open()
    receipts = runs.stage.write(ticket, {0: ["zombie"]})

    assert runs.publish(0) is PublishOutcome.PUBLISHED

    with pytest.raises((Fenced, CheckpointRolledBack, SinkError)):
        runs.close(ticket, receipts, 1)
    assert runs.stage.committed() == EVERYTHING


def test_guards_refuse_and_abort() -> None:
    runs = StatelessRuns()
    ticket = runs.open()
    receipts = runs.stage.write(ticket, {0: ["x"]})

    with pytest.raises(GuardFailed, match="two receipts"):
        runs.close(ticket, [*receipts, *receipts], 0)

    assert runs.stage.coordinator.state == "CompleteAbort"


def test_a_frame_is_written_all_or_nothing() -> None:
    runs = StatelessRuns()
    ticket = runs.open()
    receipts = runs.stage.write(ticket, ROWS)
    assert runs.stage.committed() == []

    assert runs.lead(publish_alone(ticket, receipts)) is PublishOutcome.PUBLISHED

    assert runs.stage.committed() == EVERYTHING
    assert runs.stage.coordinator.marker is None


def test_a_frame_without_rows_is_nothing() -> None:
    runs = StatelessRuns()

    assert runs.lead(publish_alone(runs.open(), [])) is PublishOutcome.PUBLISHED


@pytest.mark.parametrize("is_carried_out", [True, False])
def test_a_commit_without_an_answer_is_asked_for_again(is_carried_out: bool) -> None:
    runs = StatelessRuns()
    ticket = runs.open()
    receipts = runs.stage.write(ticket, ROWS)
    lose_commit(runs.stage, is_carried_out=is_carried_out)

    assert runs.lead(publish_alone(ticket, receipts)) is PublishOutcome.PUBLISHED

    assert runs.stage.committed() == EVERYTHING


def test_a_commit_that_somebody_else_may_have_ended_is_unknown() -> None:
    runs = StatelessRuns()
    ticket = runs.open()
    receipts = runs.stage.write(ticket, ROWS)

    def overtake(_: int, request: Any) -> Any:
        if isinstance(request, EndTxnRequest) and request.committed:
            runs.stage.coordinator.fence()
        return None

    runs.stage.cluster.rules.insert(0, once(overtake))

    with pytest.raises(CommitUnknown):
        runs.lead(publish_alone(ticket, receipts))

    assert runs.stage.committed() == []


def test_an_abandoned_batch_is_never_seen() -> None:
    runs = StatelessRuns()
    ticket = runs.open()
    runs.stage.write(ticket, ROWS)

    assert runs.somebody().lead(abandon(ticket))

    assert runs.stage.committed() == []
