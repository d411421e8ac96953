"""One receipt for each partition, and all of this batch."""

from __future__ import annotations

import pickle

import pytest

from tests.unit.client.sink.guards.given import BEGUN, receipt
from tidelog.client.sink.errors import GuardFailed
from tidelog.client.sink.guards.one_receipt import receipts_by_partition
from tidelog.core.model.ids import TopicPartition


def test_receipts_of_different_partitions_are_taken() -> None:
    receipts = [receipt(0), receipt(2)]

    found = receipts_by_partition(BEGUN, receipts)

    assert found == {TopicPartition("out", 0): receipts[0], TopicPartition("out", 2): receipts[1]}


def test_two_receipts_for_one_partition_are_two_writers() -> None:
    with pytest.raises(GuardFailed, match="out-1 has two receipts"):
        receipts_by_partition(BEGUN, [receipt(0), receipt(1), receipt(1)])


@pytest.mark.parametrize("changes", [{"producer_id": 8}, {"producer_epoch": 3}])
def test_a_receipt_of_another_batch_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(GuardFailed, match="this batch has 9 epoch 4"):
        receipts_by_partition(BEGUN, [receipt(0, **changes)])


def test_a_receipt_of_a_partition_that_the_sink_does_not_have_is_refused() -> None:
    with pytest.raises(GuardFailed, match="out-3 has a receipt and is no partition"):
        receipts_by_partition(BEGUN, [receipt(3)])


def test_tickets_and_receipts_travel() -> None:
    assert pickle.loads(pickle.dumps((BEGUN, receipt()))) == (BEGUN, receipt())
