"""The transaction coordinator of one partition: epochs, decisions, markers, holds and failover."""

from __future__ import annotations

import pytest

from tests.unit.core.transactions.lone_coordinator import LoneCoordinator, given, status
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.model.limits import EPOCH_PER_TRANSACTION, PRODUCER_EPOCH_MAX
from tidelog.core.transactions.transaction_calls import (
    NEEDS_PRODUCER_ID,
    MarkersDue,
    ProducerAnswer,
)
from tidelog.core.transactions.transaction_metadata import CLASSIC
from tidelog.core.transactions.transaction_records import transaction_record
from tidelog.core.transactions.transaction_state import TransactionStatus as Status
from tidelog.core.wire.records import NewRecord, build

P0, P1 = ("orders", 0), ("orders", 1)
OFFSETS = ("__consumer_offsets", 3)
OK = ErrorCode.NONE


def exhausted(coordinator: LoneCoordinator, producer_epoch: int) -> ProducerIdAndEpoch:
    """The transactional id has come to this producer epoch."""
    coordinator.begin()
    metadata = coordinator.shard.by_id["t"]
    changed = type(metadata)(
        producer_id=metadata.producer_id,
        producer_epoch=producer_epoch,
        timeout_ms=metadata.timeout_ms,
        status=metadata.status,
        update_wall_ms=metadata.update_wall_ms,
    )
    record = transaction_record("t", changed, value_version=1)
    batch = build([NewRecord(record.value, record.key)])
    log = coordinator.log
    base_offset = log.append(batch, leader_epoch=log.leader_epoch, wall_ms=0)
    assert base_offset is not None
    coordinator.shard.apply(record, offset=base_offset, timestamp_ms=0)
    coordinator.settle()
    return ProducerIdAndEpoch(metadata.producer_id, producer_epoch)


# InitProducerId


def test_a_new_transactional_id_needs_a_producer_id_and_begins_at_epoch_0() -> None:
    coordinator = LoneCoordinator()

    assert coordinator.init(wants_id=False) == NEEDS_PRODUCER_ID
    assert coordinator.init() == given(101, 0)
    assert status(coordinator) is Status.EMPTY


def test_a_second_producer_gets_the_next_epoch_and_fences_the_first() -> None:
    coordinator = LoneCoordinator()
    first = coordinator.begin()

    second = coordinator.begin()

    assert second == (first.producer_id, 1)
    assert coordinator.add(first, P0) is ErrorCode.PRODUCER_FENCED
    assert coordinator.end(first).error is ErrorCode.PRODUCER_FENCED
    assert coordinator.verify(first, P0) == {P0: ErrorCode.PRODUCER_FENCED}
    assert coordinator.add(second, P0) is OK


def test_a_producer_that_goes_on_names_itself_and_its_retry_gets_the_same_epoch() -> None:
    """KIP-360: the answer to a bump may be lost; who was fenced meanwhile is told so."""
    coordinator = LoneCoordinator()
    first = coordinator.begin()

    bumped = coordinator.init(expected=first)
    again = coordinator.init(expected=first)

    assert bumped == again == given(first.producer_id, 1)
    coordinator.begin()  # somebody else, unconditionally
    assert coordinator.init(expected=first).error is ErrorCode.PRODUCER_FENCED
    stranger = ProducerIdAndEpoch(first.producer_id + 77, 0)
    assert coordinator.init(expected=stranger).error is ErrorCode.PRODUCER_FENCED


def test_a_retry_across_a_failover_is_fenced_as_in_kafka() -> None:
    """The log does not keep the epoch before."""
    coordinator = LoneCoordinator()
    first = coordinator.begin()
    coordinator.init(expected=first)

    successor = coordinator.successor()

    assert successor.init(expected=first).error is ErrorCode.PRODUCER_FENCED
    assert successor.init(expected=ProducerIdAndEpoch(first.producer_id, 1)) == given(101, 2)


@pytest.mark.parametrize("transaction_version", [CLASSIC, EPOCH_PER_TRANSACTION])
def test_a_producer_that_begins_aborts_what_was_left_open_and_waits_for_the_markers(
    transaction_version: int,
) -> None:
    coordinator = LoneCoordinator(transaction_version=transaction_version)
    first = coordinator.begin()
    coordinator.add(first, P0, P1)

    assert coordinator.init() is None, "it waits"
    (due,) = coordinator.due
    assert due.partitions == {P0, P1}
    assert not due.is_commit
    assert due.producer == (first.producer_id, 1), "markers fence whoever left it open"

    coordinator.write_markers()
    assert coordinator.answers["call 3"] == given(first.producer_id, 2)
    assert status(coordinator) is Status.EMPTY


def test_when_epochs_run_out_a_new_producer_id_begins_at_0() -> None:
    coordinator = LoneCoordinator()
    last = exhausted(coordinator, PRODUCER_EPOCH_MAX - 1)

    assert coordinator.init(wants_id=False) == NEEDS_PRODUCER_ID
    rotated = coordinator.init(expected=last)

    assert rotated.error is OK
    assert rotated.producer.producer_epoch == 0
    assert rotated.producer.producer_id != last.producer_id


# A transaction


def test_partitions_are_added_once_and_known_to_leaders_that_ask() -> None:
    coordinator = LoneCoordinator()
    producer = coordinator.begin()
    assert coordinator.verify(producer, P0) == {P0: ErrorCode.TRANSACTION_ABORTABLE}

    assert coordinator.add(producer, P0) is OK
    end_offset = coordinator.log.log_end_offset
    assert coordinator.add(producer, P0) is OK

    assert coordinator.log.log_end_offset == end_offset, "nothing is written for what is known"
    assert coordinator.verify(producer, P0, P1) == {P0: OK, P1: ErrorCode.TRANSACTION_ABORTABLE}
    assert coordinator.add(producer, P0, name="other") is ErrorCode.INVALID_PRODUCER_ID_MAPPING


def test_markers_are_due_only_when_the_decision_is_committed() -> None:
    """A marker for a decision that is lost with its leader would commit what nobody decided."""
    coordinator = LoneCoordinator()
    producer = coordinator.begin()
    coordinator.add(producer, P0, OFFSETS)
    coordinator.commits_at_once = False

    assert coordinator.end(producer) is None
    assert coordinator.due == []

    coordinator.commits_at_once = True
    coordinator.settle()
    assert coordinator.answers["call 3"] == ProducerAnswer(OK, producer)
    assert coordinator.due == [
        MarkersDue(
            transactional_id="t",
            producer=producer,
            is_commit=True,
            partitions=frozenset({P0, OFFSETS}),
            transaction_version=CLASSIC,
        )
    ]
    assert status(coordinator) is Status.PREPARE_COMMIT
    coordinator.write_markers()
    assert status(coordinator) is Status.COMPLETE_COMMIT


def test_with_an_epoch_per_transaction_the_markers_carry_the_next_one() -> None:
    coordinator = LoneCoordinator()
    producer = coordinator.begin()
    coordinator.add(producer, P0, client_version=EPOCH_PER_TRANSACTION)

    answer = coordinator.end(producer, client_version=EPOCH_PER_TRANSACTION)

    following = ProducerIdAndEpoch(producer.producer_id, 1)
    assert answer == ProducerAnswer(OK, following)
    assert coordinator.due[0].producer == following
    coordinator.write_markers()
    retried = coordinator.end(producer, client_version=EPOCH_PER_TRANSACTION)
    assert retried == ProducerAnswer(OK, following), "a lost answer is given again"
    assert coordinator.add(producer, P0) is ErrorCode.PRODUCER_FENCED


def test_a_late_end_hits_the_next_transaction_in_the_classic_protocol_only() -> None:
    """X-21: Kafka's hole, and how an epoch per transaction closes it."""
    classic = LoneCoordinator()
    producer = classic.begin()
    classic.add(producer, P0)
    classic.end(producer)
    classic.write_markers()
    classic.add(producer, P1)  # the next transaction
    assert classic.end(producer, is_commit=True).error is OK, "the late one commits it"

    newer = LoneCoordinator()
    first = newer.begin()
    newer.add(first, P0, client_version=EPOCH_PER_TRANSACTION)
    second = newer.end(first, client_version=EPOCH_PER_TRANSACTION).producer
    newer.write_markers()
    newer.add(second, P1, client_version=EPOCH_PER_TRANSACTION)
    late = newer.end(first, client_version=EPOCH_PER_TRANSACTION)
    assert late.error is ErrorCode.PRODUCER_FENCED
    assert status(newer) is Status.ONGOING


def test_an_end_at_the_last_epoch_goes_on_under_a_new_producer_id() -> None:
    coordinator = LoneCoordinator()
    last = exhausted(coordinator, PRODUCER_EPOCH_MAX - 1)
    coordinator.add(last, P0, client_version=EPOCH_PER_TRANSACTION)

    assert coordinator.end(last, client_version=EPOCH_PER_TRANSACTION) == NEEDS_PRODUCER_ID
    answer = coordinator.end(last, client_version=EPOCH_PER_TRANSACTION, fresh_producer_id=900)

    assert answer == given(900, 0)
    assert coordinator.due[0].producer == (last.producer_id, PRODUCER_EPOCH_MAX)
    coordinator.write_markers()
    retried = coordinator.end(last, client_version=EPOCH_PER_TRANSACTION)
    assert retried == given(900, 0)
    assert coordinator.add(ProducerIdAndEpoch(900, 0), P0) is OK


def test_an_abort_of_nothing_is_a_step_of_its_own_with_an_epoch_per_transaction() -> None:
    """A client that does not know whether it wrote anything may ask for it."""
    coordinator = LoneCoordinator()
    producer = coordinator.begin()

    answer = coordinator.end(producer, is_commit=False, client_version=EPOCH_PER_TRANSACTION)

    assert answer == given(producer.producer_id, 1)
    assert coordinator.due[0].partitions == frozenset()
    coordinator.write_markers()
    assert status(coordinator) is Status.COMPLETE_ABORT
