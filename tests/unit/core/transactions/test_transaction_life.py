"""Transactions that wait, outlive their coordinator, or take too long."""

from __future__ import annotations

import pytest

from tests.unit.core.transactions.lone_coordinator import (
    TIMEOUT_MS,
    WALL_MS,
    LoneCoordinator,
    given,
    status,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.transactions.held_calls import HELD_MAX, HOLD_MS_MAX
from tidelog.core.transactions.transaction_calls import ProducerAnswer
from tidelog.core.transactions.transaction_shard import TransactionSettings
from tidelog.core.transactions.transaction_state import TransactionStatus as Status

P0, P1 = ("orders", 0), ("orders", 1)
OK = ErrorCode.NONE


# Waiting instead of refusing


def test_the_next_transaction_waits_for_the_markers_of_the_one_before() -> None:
    coordinator = LoneCoordinator()
    producer = coordinator.begin()
    coordinator.add(producer, P0)
    coordinator.end(producer)

    assert coordinator.add(producer, P1) is None, "it waits"
    assert coordinator.verify(producer, P1) is None
    assert coordinator.end(producer) is None

    coordinator.write_markers()
    assert coordinator.answers["call 4"] is OK
    assert coordinator.answers["call 5"] == {P1: OK}, "each rests on what the one before wrote"
    assert coordinator.answers["call 6"] == ProducerAnswer(OK, producer)
    assert status(coordinator) is Status.PREPARE_COMMIT


def test_who_waits_for_too_long_gets_kafkas_answer() -> None:
    coordinator = LoneCoordinator()
    producer = coordinator.begin()
    coordinator.add(producer, P0)
    coordinator.end(producer)
    coordinator.add(producer, P1)
    coordinator.verify(producer, P1)
    coordinator.init()

    coordinator.pass_time(HOLD_MS_MAX)

    concurrent = ErrorCode.CONCURRENT_TRANSACTIONS
    assert coordinator.answers["call 4"] is concurrent
    assert coordinator.answers["call 5"] == {P1: concurrent}
    assert coordinator.answers["call 6"] == ProducerAnswer(concurrent)
    coordinator.write_markers()
    assert status(coordinator) is Status.COMPLETE_COMMIT


def test_those_who_wait_for_one_id_are_bounded() -> None:
    coordinator = LoneCoordinator()
    producer = coordinator.begin()
    coordinator.add(producer, P0)
    coordinator.end(producer)

    for _ in range(HELD_MAX):
        assert coordinator.add(producer, P1) is None

    assert coordinator.add(producer, P1) is ErrorCode.CONCURRENT_TRANSACTIONS


# Death


@pytest.mark.parametrize("is_commit", [True, False])
def test_whoever_leads_next_completes_what_was_decided(is_commit: bool) -> None:
    coordinator = LoneCoordinator()
    producer = coordinator.begin()
    coordinator.add(producer, P0, P1)
    coordinator.end(producer, is_commit=is_commit)
    assert coordinator.add(producer, P1) is None, "it waits for the markers"

    successor = coordinator.successor()

    assert coordinator.answers["call 4"] is ErrorCode.NOT_COORDINATOR
    (due,) = successor.due
    assert (due.producer, due.is_commit, due.partitions) == (
        producer,
        is_commit,
        frozenset({P0, P1}),
    )
    successor.write_markers()
    assert status(successor) is (Status.COMPLETE_COMMIT if is_commit else Status.COMPLETE_ABORT)
    assert successor.end(producer, is_commit=is_commit).error is OK, "the retry of the client"


def test_a_decision_that_was_not_committed_is_not_seen_by_its_client() -> None:
    coordinator = LoneCoordinator()
    producer = coordinator.begin()
    coordinator.add(producer, P0)
    coordinator.commits_at_once = False

    assert coordinator.end(producer) is None
    coordinator.log.leader_epoch += 1
    coordinator.settle()

    assert coordinator.answers["call 3"] is ErrorCode.NOT_COORDINATOR
    assert coordinator.due == []


def test_markers_of_another_epoch_complete_nothing() -> None:
    """They were written for a former decision, and their answer came late."""
    coordinator = LoneCoordinator()
    producer = coordinator.begin()
    coordinator.add(producer, P0)
    coordinator.end(producer)
    late = coordinator.due[0]
    coordinator.write_markers()
    coordinator.add(producer, P1)

    coordinator.due = [late]
    coordinator.write_markers()

    assert status(coordinator) is Status.ONGOING


# Time


def test_a_transaction_that_takes_too_long_is_aborted_and_its_producer_fenced() -> None:
    coordinator = LoneCoordinator()
    producer = coordinator.begin()
    coordinator.add(producer, P0)

    coordinator.pass_time(TIMEOUT_MS - 10_000)
    assert status(coordinator) is Status.ONGOING
    coordinator.pass_time(20_001)

    (due,) = coordinator.due
    assert due.producer == (producer.producer_id, 1)
    coordinator.write_markers()
    assert coordinator.end(producer).error is ErrorCode.PRODUCER_FENCED
    assert coordinator.init(expected=producer) == given(producer.producer_id, 1), "it may go on"


def test_an_idle_id_is_forgotten_but_not_one_with_an_open_transaction() -> None:
    settings = TransactionSettings(id_expiration_ms=100_000, expiry_interval_ms=50_000)
    coordinator = LoneCoordinator(settings=settings)
    coordinator.begin("idle")
    busy = coordinator.init("busy").producer
    coordinator.pass_time(99_000)
    coordinator.add(busy, P0, name="busy")

    coordinator.pass_time(51_002)

    assert set(coordinator.shard.by_id) == {"busy"}
    assert set(coordinator.successor().shard.by_id) == {"busy"}


def test_times_are_of_the_wall_clock_and_survive_a_failover() -> None:
    coordinator = LoneCoordinator()
    producer = coordinator.begin()
    coordinator.add(producer, P0)
    start_wall_ms = coordinator.shard.by_id["t"].start_wall_ms

    successor = coordinator.successor()

    assert start_wall_ms is not None and start_wall_ms >= WALL_MS
    assert successor.shard.by_id["t"].start_wall_ms == start_wall_ms
