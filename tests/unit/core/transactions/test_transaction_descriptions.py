"""Transactions as they are described and listed."""

from __future__ import annotations

import pytest

from tests.unit.core.transactions.lone_coordinator import TIMEOUT_MS, WALL_MS, LoneCoordinator
from tidelog.core.model.errors import ErrorCode
from tidelog.core.transactions.transaction_descriptions import (
    TransactionFilters,
    describe_transaction,
    list_transactions,
    unknown_states,
)
from tidelog.core.wire.messages.api_65_describe_transactions import TopicData, TransactionState
from tidelog.core.wire.messages.api_66_list_transactions import ListedTransaction

P0, P1, OTHER = ("orders", 0), ("orders", 1), ("bills", 7)


def three() -> LoneCoordinator:
    """`idle` has no transaction, `open` has one since 100 ms, `ended` has committed one."""
    coordinator = LoneCoordinator()
    coordinator.begin("idle")
    ended = coordinator.begin("ended")
    coordinator.add(ended, P0, name="ended")
    coordinator.end(ended, name="ended")
    coordinator.write_markers()
    opened = coordinator.begin("open")
    coordinator.add(opened, P1, OTHER, P0, name="open")
    coordinator.pass_time(100)
    return coordinator


def listed(coordinator: LoneCoordinator, filters: TransactionFilters) -> list[str]:
    wall_ms = WALL_MS + coordinator.now_ms
    found = list_transactions(coordinator.shard, filters, wall_ms=wall_ms)
    return [each.transactional_id for each in found]


# DescribeTransactions


def test_an_open_transaction_is_described_with_its_partitions_by_topic() -> None:
    coordinator = three()

    assert describe_transaction(coordinator.shard, "open") == TransactionState(
        transactional_id="open",
        transaction_state="Ongoing",
        transaction_timeout_ms=TIMEOUT_MS,
        transaction_start_time_ms=WALL_MS + coordinator.now_ms - 100,
        producer_id=103,
        producer_epoch=0,
        topics=[
            TopicData(topic="bills", partitions=[7]),
            TopicData(topic="orders", partitions=[0, 1]),
        ],
    )


def test_an_id_that_never_had_a_transaction_has_no_start_and_no_partitions() -> None:
    found = describe_transaction(three().shard, "idle")

    assert (found.error_code, found.transaction_state) == (ErrorCode.NONE, "Empty")
    assert (found.transaction_start_time_ms, found.topics) == (-1, [])


def test_a_transaction_that_has_ended_keeps_its_start() -> None:
    found = describe_transaction(three().shard, "ended")

    assert found.transaction_state == "CompleteCommit"
    assert found.transaction_start_time_ms > 0 and found.topics == []


def test_partitions_that_wait_for_their_markers_are_shown() -> None:
    coordinator = three()
    opened = coordinator.shard.by_id["open"]
    coordinator.init("open")

    found = describe_transaction(coordinator.shard, "open")
    assert found.transaction_state == "PrepareAbort"
    assert found.producer_epoch == opened.producer_epoch + 1
    assert [each.topic for each in found.topics] == ["bills", "orders"]


@pytest.mark.parametrize(
    ("name", "error"),
    [("", ErrorCode.INVALID_REQUEST), ("other", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND)],
)
def test_what_is_no_id_here_is_an_error(name: str, error: ErrorCode) -> None:
    assert describe_transaction(three().shard, name) == TransactionState(
        transactional_id=name, error_code=error
    )


# ListTransactions


def test_without_a_filter_all_are_listed() -> None:
    assert list_transactions(three().shard, TransactionFilters(), wall_ms=0) == [
        ListedTransaction(transactional_id=name, producer_id=producer_id, transaction_state=state)
        for name, producer_id, state in (
            ("idle", 101, "Empty"),
            ("ended", 102, "CompleteCommit"),
            ("open", 103, "Ongoing"),
        )
    ]


@pytest.mark.parametrize(
    ("states", "names"),
    [
        ({"Ongoing"}, ["open"]),
        ({"Empty", "Ongoing"}, ["idle", "open"]),
        ({"Empty", "Nonsense"}, ["idle"]),
        ({"Nonsense"}, []),
        ({"ongoing"}, []),
        ({"Dead"}, []),
    ],
)
def test_states_are_filtered_by_their_exact_names(states: set[str], names: list[str]) -> None:
    """A filter of unknown states only is still a filter."""
    assert listed(three(), TransactionFilters(states=frozenset(states))) == names


def test_producers_are_filtered() -> None:
    assert listed(three(), TransactionFilters(producer_ids=frozenset({101, 103, 999}))) == [
        "idle",
        "open",
    ]


@pytest.mark.parametrize(
    ("longer_than_ms", "is_listed"), [(0, True), (99, True), (100, False), (101, False)]
)
def test_a_transaction_must_run_longer_than_the_duration(
    longer_than_ms: int, is_listed: bool
) -> None:
    filters = TransactionFilters(longer_than_ms=longer_than_ms)
    assert ("open" in listed(three(), filters)) is is_listed


def test_an_id_without_a_transaction_is_older_than_any_duration() -> None:
    """As in Kafka, which counts from a start of -1."""
    coordinator = three()
    wall_ms = WALL_MS + coordinator.now_ms
    assert listed(coordinator, TransactionFilters(longer_than_ms=wall_ms)) == ["idle"]
    assert listed(coordinator, TransactionFilters(longer_than_ms=wall_ms + 1)) == []


def test_ids_are_filtered_and_every_filter_must_pass() -> None:
    by_id = TransactionFilters(matches_id=lambda name: name.endswith("d"))
    both = TransactionFilters(matches_id=lambda name: True, states=frozenset({"Empty"}))

    assert listed(three(), by_id) == ["ended"]
    assert listed(three(), both) == ["idle"]


def test_an_expired_id_is_neither_listed_nor_described() -> None:
    coordinator = three()
    coordinator.pass_time(8 * 24 * 3600 * 1000)
    coordinator.write_markers()

    assert "idle" not in listed(coordinator, TransactionFilters())
    missing = ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert describe_transaction(coordinator.shard, "idle").error_code == missing


def test_states_that_kafka_does_not_know_are_named_once() -> None:
    known = ["Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit"]
    known += ["CompleteAbort", "Dead", "PrepareEpochFence"]
    assert unknown_states(["b", *known, "a", "b", "ongoing"]) == ["b", "a", "ongoing"]
