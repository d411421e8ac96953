"""The driver's protocol against a fake cluster: publish, skip, abort, and guards at the commit."""

from __future__ import annotations

import pytest

from tests.unit.client.sink.stage import ROWS, Stage, encoded
from tidelog.client.events import BatchCommitted
from tidelog.client.sink.errors import (
    GuardFailed,
)
from tidelog.client.sink.values import AlreadyPublished
from tidelog.core.wire.messages.api_09_offset_fetch import OffsetFetchRequest


def test_batches_are_published_one_after_the_other() -> None:
    stage = Stage()
    run = stage.run().take_over()

    assert run.publish(0, ROWS)
    assert stage.committed() == ["a", "b", "c", "d"]
    assert run.publish(1, {1: ["e"]})

    assert stage.committed() == ["a", "b", "c", "d", "e"]
    assert [each.records for each in run.host.trace.of(BatchCommitted)] == [4, 1]


def test_nothing_is_seen_before_the_commit() -> None:
    stage = Stage()
    run = stage.run().take_over()

    ticket = run.ticket(0)
    receipts = run.write(ticket, ROWS)

    assert stage.committed() == []
    run.commit(receipts)
    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_batch_without_records_moves_the_marker_too() -> None:
    stage = Stage()
    run = stage.run().take_over()

    assert run.publish(0, {})
    assert run.publish(1, ROWS)

    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_published_batch_is_skipped_by_the_next_run() -> None:
    stage = Stage()
    stage.run(name="A").take_over().publish(0, ROWS)

    run = stage.run(name="B").take_over()

    assert run.begin(0) == AlreadyPublished(batch_id=0)
    assert stage.committed() == ["a", "b", "c", "d"]
    assert run.publish(1, {0: ["e"]})


def test_every_transaction_has_a_producer_epoch_of_its_own() -> None:
    stage = Stage()
    run = stage.run().take_over()
    epochs = [run.ticket(0).identity.producer_epoch]
    run.commit([])
    epochs.append(run.ticket(1).identity.producer_epoch)
    run.lead(run.driver.abort("a task failed"))
    epochs.append(run.ticket(1).identity.producer_epoch)

    assert epochs == sorted(set(epochs))


def test_an_aborted_batch_may_be_begun_again() -> None:
    stage = Stage()
    run = stage.run().take_over()
    ticket = run.ticket(0)
    run.write(ticket, {0: ["lost"]})

    run.lead(run.driver.abort("a task failed"))

    assert run.publish(0, ROWS)
    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_begin_aborts_what_is_still_open() -> None:
    stage = Stage()
    run = stage.run().take_over()
    run.write(run.ticket(0), {0: ["lost"]})

    assert run.publish(0, ROWS)

    assert stage.committed() == ["a", "b", "c", "d"]


def test_waiting_for_the_end_of_the_former_transaction_is_patient() -> None:
    """Codes 51 and 88: the markers of the batch before are still being written."""
    stage = Stage()
    stage.coordinator.delay = 7
    run = stage.run().take_over()

    for batch_id in range(3):
        assert run.publish(batch_id, {0: [f"b{batch_id}"]})

    assert stage.asked(OffsetFetchRequest) > 20
    stage.run(name="B").take_over()
    assert stage.committed() == ["b0", "b1", "b2"]


def test_a_partition_that_nobody_reported_refuses_the_batch() -> None:
    stage = Stage()
    run = stage.run().take_over()
    ticket = run.ticket(0)
    stage.write(ticket, {1: ["by a dead attempt"]})
    receipts = run.write(ticket, {0: ["a"]})

    with pytest.raises(GuardFailed, match="out-1 was added"):
        run.commit(receipts)

    assert run.publish(0, ROWS)
    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_writer_that_went_on_after_the_receipt_refuses_the_batch() -> None:
    stage = Stage()
    run = stage.run().take_over()
    ticket = run.ticket(0)
    receipts = run.write(ticket, {0: ["a", "b"]})
    error, _ = stage.cluster["out-0"].append(
        encoded(ticket.identity, ["by another"], base_sequence=2).data
    )
    assert error == 0

    with pytest.raises(GuardFailed, match="at sequence 2"):
        run.commit(receipts)

    assert run.publish(0, ROWS)
    assert stage.committed() == ["a", "b", "c", "d"]


def test_two_receipts_for_one_partition_refuse_the_batch() -> None:
    stage = Stage()
    run = stage.run().take_over()
    ticket = run.ticket(0)
    receipts = run.write(ticket, {0: ["a"]})

    with pytest.raises(GuardFailed, match="two receipts"):
        run.commit([*receipts, *receipts])

    assert stage.committed() == []
