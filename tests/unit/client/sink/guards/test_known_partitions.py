"""The transaction has no partition that nobody reported."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.sink.guards.given import IDENTITY
from tidelog.client.sink.errors import Fenced, GuardFailed
from tidelog.client.sink.guards.known_partitions import check_partitions
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_65_describe_transactions import TopicData, TransactionState

P0, P1 = TopicPartition("out", 0), TopicPartition("out", 1)


def state(*topics: TopicData, **changes: Any) -> TransactionState:
    given: dict[str, Any] = {"transactional_id": "t", "producer_id": 9, "producer_epoch": 4}
    return TransactionState(**{**given, **changes}, topics=list(topics))


def test_partitions_with_receipts_and_the_markers_own_are_fine() -> None:
    offsets = TopicData(topic="__consumer_offsets", partitions=[7])

    check_partitions(state(TopicData(topic="out", partitions=[1, 0]), offsets), IDENTITY, {P0, P1})


def test_fewer_partitions_than_receipts_are_the_other_guards_affair() -> None:
    check_partitions(state(), IDENTITY, {P0})


def test_a_partition_without_a_receipt_was_written_by_somebody_else() -> None:
    with pytest.raises(GuardFailed, match="out-1 was added to the transaction"):
        check_partitions(state(TopicData(topic="out", partitions=[0, 1])), IDENTITY, {P0})


@pytest.mark.parametrize("changes", [{"producer_id": 8}, {"producer_epoch": 5}])
def test_a_transaction_of_somebody_else_is_not_ours(changes: dict[str, int]) -> None:
    with pytest.raises(Fenced, match="this batch has 9 epoch 4"):
        check_partitions(state(**changes), IDENTITY, {P0})
