"""Markers and checkpoints at work: the first batch, refusals, renewal."""

from __future__ import annotations

import pytest

from tests.unit.client.sink.stage import ROWS, Stage
from tidelog.client.events import MarkerRenewed
from tidelog.client.sink.errors import (
    CheckpointForeign,
    CheckpointRolledBack,
    ForeignRun,
    MarkerMissing,
)
from tidelog.client.sink.values import AlreadyPublished
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdRequest


def test_the_first_batch_of_all_is_batch_zero() -> None:
    stage = Stage()

    with pytest.raises(MarkerMissing, match="resume_at=3"):
        stage.run().take_over().begin(3)

    assert stage.run(name="again").take_over().publish(0, ROWS)


def test_an_operator_may_say_where_a_sink_without_marker_goes_on() -> None:
    stage = Stage()
    run = stage.run(resume_at=3).take_over()

    assert run.begin(2) == AlreadyPublished(batch_id=2)
    assert run.publish(3, ROWS)
    assert run.publish(4, {0: ["e"]})


def test_a_marker_that_expires_under_a_running_query_is_missed_loudly() -> None:
    stage = Stage()
    run = stage.run().take_over()
    run.publish(0, ROWS)
    stage.coordinator.marker = None

    with pytest.raises(MarkerMissing, match="vanished"):
        run.begin(1)


def test_a_query_with_another_checkpoint_is_refused_before_it_touches_anything() -> None:
    stage = Stage()
    owner = stage.run(name="A").take_over()
    owner.publish(0, ROWS)
    before = stage.asked(InitProducerIdRequest)

    with pytest.raises(CheckpointForeign, match="query-1, and this one is query-2"):
        stage.run(name="B", query_id="query-2").take_over()

    assert stage.asked(InitProducerIdRequest) == before
    assert owner.publish(1, {0: ["e"]})


def test_a_rolled_back_checkpoint_is_refused() -> None:
    stage = Stage()
    run = stage.run(name="A").take_over()
    for batch_id in range(3):
        run.publish(batch_id, {0: [str(batch_id)]})

    with pytest.raises(CheckpointRolledBack, match="published twice"):
        stage.run(name="B").take_over().begin(1)

    with pytest.raises(CheckpointRolledBack, match="other source offsets"):
        stage.run(name="C").take_over().begin(2, source="other")


def test_the_marker_is_renewed_every_seventh_of_its_life() -> None:
    stage = Stage()
    run = stage.run().take_over()
    run.publish(0, ROWS)
    due_ms = run.driver.renewal_due_ms()
    assert due_ms is not None
    week_ms = 7 * 24 * 3_600_000
    assert abs(due_ms - run.host.now_ms - week_ms // 7) < 1_000
    marker = stage.coordinator.marker

    run.lead(run.driver.renew())

    assert stage.coordinator.marker == marker
    assert run.host.trace.of(MarkerRenewed) == [MarkerRenewed(batch_id=0)]
    assert (run.driver.renewal_due_ms() or 0) > due_ms
    assert run.publish(1, {0: ["e"]})


def test_a_renewal_by_a_driver_that_was_overtaken_stops_it() -> None:
    stage = Stage()
    first = stage.run(name="A").take_over()
    second = stage.run(name="B").take_over()

    with pytest.raises(ForeignRun):
        first.lead(first.driver.renew())

    assert second.publish(0, ROWS)
