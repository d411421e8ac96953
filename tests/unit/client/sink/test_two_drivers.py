"""Two drivers of one sink: who was overtaken stops, and harms nobody."""

from __future__ import annotations

import pytest

from tests.unit.client.sink.stage import P1, ROWS, Run, Stage, encoded
from tidelog.client.events import MarkerDoubted
from tidelog.client.sink.driver import DOUBTS_MAX, FRESH_MS
from tidelog.client.sink.errors import (
    Fenced,
    ForeignRun,
    OutOfTime,
    SinkError,
)
from tidelog.client.sink.values import AlreadyPublished
from tidelog.core.wire.messages.api_09_offset_fetch import OffsetFetchRequest
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdRequest


def test_a_driver_whose_sink_was_taken_over_stops_and_touches_nothing() -> None:
    stage = Stage()
    first = stage.run(name="A").take_over()
    first.publish(0, ROWS)
    second = stage.run(name="B").take_over()
    before = stage.asked(InitProducerIdRequest)

    with pytest.raises(ForeignRun, match=r"another run .B"):
        first.begin(1)

    assert stage.asked(InitProducerIdRequest) == before
    assert second.publish(1, {0: ["e"]})


def test_a_final_error_stays_final() -> None:
    stage = Stage()
    first = stage.run(name="A").take_over()
    stage.run(name="B").take_over()

    for _ in range(2):
        with pytest.raises(ForeignRun):
            first.begin(0)


def test_a_driver_that_is_overtaken_in_its_batch_cannot_commit_it() -> None:
    stage = Stage()
    first = stage.run(name="A").take_over()
    receipts = first.write(first.ticket(0), {0: ["zombie"]})
    second = stage.run(name="B").take_over()
    ticket = second.ticket(0)

    with pytest.raises(Fenced):
        first.commit(receipts)

    second.commit(second.write(ticket, ROWS))
    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_late_task_of_an_overtaken_driver_is_refused() -> None:
    stage = Stage()
    first = stage.run(name="A").take_over()
    ticket = first.ticket(0)
    first.write(ticket, {0: ["zombie"]})
    second = stage.run(name="B").take_over()
    second.commit(second.write(second.ticket(0), ROWS))

    with pytest.raises(SinkError):
        stage.write(ticket, {0: ["late"]})
    with pytest.raises(SinkError):
        stage.write(ticket, {1: ["late"]})

    assert stage.committed() == ["a", "b", "c", "d"]


def test_an_old_answer_about_the_marker_is_no_ground_to_act_on() -> None:
    """A is stopped before it reads the answer; what it would ask for next would abort B's batch."""
    stage = Stage()
    first = stage.run(name="A").take_over()
    ends = first.start(first.driver.begin(0, "source-0"))
    clock = stage.cluster.clock
    clock.run_until(lambda: isinstance(stage.cluster.seen[-1].request, OffsetFetchRequest))
    first.host.freeze()
    second = stage.run(name="B").take_over()
    ticket = second.ticket(0)
    receipts = second.write(ticket, ROWS)
    clock.run_for(1_000)

    first.host.thaw()
    clock.run_until(lambda: ends)

    assert isinstance(ends[0], ForeignRun)
    assert first.host.trace.of(MarkerDoubted)
    second.commit(receipts)
    assert stage.committed() == ["a", "b", "c", "d"]


@pytest.mark.parametrize("doubts", [0, 1, 5])
def test_a_driver_that_slept_for_a_moment_does_not_abort_the_batch_of_its_successor(
    doubts: int,
) -> None:
    """Its answer is still fresh enough to act on, so nobody may have begun a batch by then."""
    stage = Stage()
    first = stage.run(name="A").take_over()
    ends = first.start(first.driver.begin(0, "source-0"))
    for _ in range(doubts):
        stop_before_it_reads_the_marker(stage, first)
        stage.cluster.clock.run_for(6_000)
        first.host.thaw()
    stop_before_it_reads_the_marker(stage, first)
    second = stage.run(name="B").take_over()
    receipts = second.write(second.ticket(0), ROWS)

    first.host.thaw()
    stage.cluster.clock.run_until(lambda: ends)

    assert isinstance(ends[0], ForeignRun)
    second.commit(receipts)
    assert stage.committed() == ["a", "b", "c", "d"]


def stop_before_it_reads_the_marker(stage: Stage, run: Run) -> None:
    before = stage.asked(OffsetFetchRequest)
    stage.cluster.clock.run_until(lambda: stage.asked(OffsetFetchRequest) > before)
    run.host.freeze()


def test_a_cluster_whose_answers_are_always_too_old_is_told_of() -> None:
    """Nothing is done on them, and nobody waits for ever; the batch may be begun again."""
    stage = Stage()
    run = stage.run().take_over()
    ends = run.start(run.driver.begin(0, "source-0"))
    for _ in range(DOUBTS_MAX):
        stop_before_it_reads_the_marker(stage, run)
        stage.cluster.clock.run_for(FRESH_MS + 1)
        run.host.thaw()

    stage.cluster.clock.run_until(lambda: ends)

    assert isinstance(ends[0], OutOfTime)
    assert not ends[0].is_final
    assert run.publish(0, ROWS)


def test_only_who_takes_over_from_somebody_waits_before_the_first_batch() -> None:
    stage = Stage()
    clock = stage.cluster.clock
    first = stage.run(name="A").take_over()
    began_ms = clock.now_ms
    first.publish(0, ROWS)
    fresh_ms = clock.now_ms - began_ms
    second = stage.run(name="B").take_over()
    began_ms = clock.now_ms

    assert second.begin(0) == AlreadyPublished(batch_id=0)
    skipped_ms = clock.now_ms - began_ms
    second.ticket(1)

    assert max(fresh_ms, skipped_ms) < FRESH_MS <= clock.now_ms - began_ms


def test_a_late_task_of_our_own_does_not_end_the_run() -> None:
    """It adds a partition after the commit, so that the next epoch is refused at first."""
    stage = Stage()
    run = stage.run().take_over()
    ticket = run.ticket(0)
    run.commit(run.write(ticket, ROWS))
    host, task = stage.task(ticket)
    host.do(lambda now_ms: task.append(P1, encoded(ticket.identity, ["late"]), now_ms=now_ms))
    stage.cluster.clock.run_until(lambda: task.is_settled)

    assert run.publish(1, {0: ["e"]})

    assert stage.committed() == ["a", "b", "c", "d", "e"]
