"""ListTransactions: all partitions of a node together."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.node.api.group_node import GroupNode
from tests.unit.core.node.api.test_api_65_describe_transactions import NAMES, TransactionNode
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_66_list_transactions as api
from tidelog.core.wire.messages.api_66_list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
)


@pytest.fixture(scope="module")
def node() -> TransactionNode:
    """`a` has an open transaction since 1,000 ms, the others have none."""
    made = TransactionNode()
    for name in NAMES:
        producer = made.begin(name)
        if name == "a":
            made.add("a", producer, 0)
    made.pass_time(1_000)
    return made


def names(answer: Any) -> list[str]:
    return sorted(each.transactional_id for each in answer.transaction_states)


@pytest.mark.parametrize("version", api.VERSIONS)
def test_transactions_of_all_partitions_are_listed(node: TransactionNode, version: int) -> None:
    answer = node.ask(ListTransactionsRequest(), version)
    assert names(answer) == NAMES
    states = {it.transactional_id: it.transaction_state for it in answer.transaction_states}
    assert states == {name: "Ongoing" if name == "a" else "Empty" for name in NAMES}


def test_filters_are_passed_on(node: TransactionNode) -> None:
    [opened] = node.ask(ListTransactionsRequest(state_filters=["Ongoing"]), 0).transaction_states
    by_producer = ListTransactionsRequest(producer_id_filters=[opened.producer_id])
    assert names(node.ask(by_producer, 0)) == ["a"]
    assert names(node.ask(ListTransactionsRequest(duration_filter=500), 1)) == NAMES
    assert "a" not in names(node.ask(ListTransactionsRequest(duration_filter=60_000), 1))
    assert names(node.ask(ListTransactionsRequest(transactional_id_pattern="[ab]"), 2)) == NAMES[:2]
    assert names(node.ask(ListTransactionsRequest(transactional_id_pattern=""), 2)) == NAMES


def test_states_that_are_not_known_are_named(node: TransactionNode) -> None:
    answer = node.ask(ListTransactionsRequest(state_filters=["Sleepy", "Ongoing"]), 0)
    assert (answer.unknown_state_filters, names(answer)) == (["Sleepy"], ["a"])


def test_a_bad_pattern_is_refused() -> None:
    node = GroupNode(has_topic=False)
    answer = node.ask(ListTransactionsRequest(transactional_id_pattern="a(b"), 2)
    assert answer.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
    assert answer.transaction_states == []


def test_a_node_that_coordinates_nothing_has_an_empty_list() -> None:
    answer = GroupNode(has_topic=False).ask(ListTransactionsRequest(), 2)
    assert (answer.error_code, answer.transaction_states) == (ErrorCode.NONE, [])


def test_a_partition_that_is_loading_spoils_the_list_and_one_that_left_does_not() -> None:
    listed = [ListedTransaction(transactional_id="a")]
    moved = api.combine([listed, ErrorCode.NOT_COORDINATOR], unknown=["x"])
    assert (moved.transaction_states, moved.unknown_state_filters) == (listed, ["x"])
    loading = api.combine([listed, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS], unknown=["x"])
    assert loading.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
    assert (loading.transaction_states, loading.unknown_state_filters) == ([], [])
