"""Each guard refuses the batch that a second writer touched, and no other."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from tests.unit.client.sink.given import IDENTITY, TICKET, receipt
from tidelog.client.sink.errors import Fenced, GuardFailed
from tidelog.client.sink.guards import (
    RECORDS_MAX,
    RisingOffsets,
    check_partitions,
    check_producer,
    first_batch_records_max,
    receipts_by_partition,
)
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_61_describe_producers import ProducerState
from tidelog.core.wire.messages.api_65_describe_transactions import TopicData, TransactionState

# One receipt for each partition, and all of this batch.


def test_receipts_of_different_partitions_are_taken() -> None:
    receipts = [receipt(0), receipt(2)]

    found = receipts_by_partition(TICKET, receipts)

    assert found == {TopicPartition("out", 0): receipts[0], TopicPartition("out", 2): receipts[1]}


def test_two_receipts_for_one_partition_are_two_writers() -> None:
    with pytest.raises(GuardFailed, match="out-1 has two receipts"):
        receipts_by_partition(TICKET, [receipt(0), receipt(1), receipt(1)])


@pytest.mark.parametrize("changes", [{"producer_id": 8}, {"producer_epoch": 3}])
def test_a_receipt_of_another_batch_is_refused(changes: dict[str, int]) -> None:
    with pytest.raises(GuardFailed, match="this batch has 9 epoch 4"):
        receipts_by_partition(TICKET, [receipt(0, **changes)])


def test_a_receipt_of_a_partition_that_the_sink_does_not_have_is_refused() -> None:
    with pytest.raises(GuardFailed, match="out-3 has a receipt and is no partition"):
        receipts_by_partition(TICKET, [receipt(3)])


def test_tickets_and_receipts_travel() -> None:
    assert pickle.loads(pickle.dumps((TICKET, receipt()))) == (TICKET, receipt())


# The transaction has no partition that nobody reported.


P0, P1 = TopicPartition("out", 0), TopicPartition("out", 1)


def transaction(*topics: TopicData, **changes: Any) -> TransactionState:
    given: dict[str, Any] = {"transactional_id": "t", "producer_id": 9, "producer_epoch": 4}
    return TransactionState(**{**given, **changes}, topics=list(topics))


def test_partitions_with_receipts_and_the_markers_own_are_fine() -> None:
    offsets = TopicData(topic="__consumer_offsets", partitions=[7])

    check_partitions(
        transaction(TopicData(topic="out", partitions=[1, 0]), offsets), IDENTITY, {P0, P1}
    )


def test_fewer_partitions_than_receipts_are_the_other_guards_affair() -> None:
    check_partitions(transaction(), IDENTITY, {P0})


def test_a_partition_without_a_receipt_was_written_by_somebody_else() -> None:
    with pytest.raises(GuardFailed, match="out-1 was added to the transaction"):
        check_partitions(transaction(TopicData(topic="out", partitions=[0, 1])), IDENTITY, {P0})


@pytest.mark.parametrize("changes", [{"producer_id": 8}, {"producer_epoch": 5}])
def test_a_transaction_of_somebody_else_is_not_ours(changes: dict[str, int]) -> None:
    with pytest.raises(Fenced, match="this batch has 9 epoch 4"):
        check_partitions(transaction(**changes), IDENTITY, {P0})


# What a partition remembers of the producer must be what the receipt says.


def producer(**changes: Any) -> ProducerState:
    given: dict[str, Any] = {
        "producer_id": 9,
        "producer_epoch": 4,
        "last_sequence": 29,
        "current_txn_start_offset": 100,
    }
    return ProducerState(**{**given, **changes})


def test_the_same_story_is_believed() -> None:
    check_producer(receipt(), [producer(producer_id=8, last_sequence=5), producer()])


def test_sequences_wrap_around() -> None:
    check_producer(receipt(next_sequence=0), [producer(last_sequence=2**31 - 1)])


@pytest.mark.parametrize(
    ("producers", "sentence"),
    [
        ([], "knows nothing of producer 9"),
        ([producer(producer_id=8)], "knows nothing of producer 9"),
        ([producer(producer_epoch=5)], "producer epoch 5, not 4"),
        ([producer(last_sequence=30)], "at sequence 30, and the receipt ends at 29"),
        ([producer(last_sequence=28)], "at sequence 28, and the receipt ends at 29"),
        ([producer(current_txn_start_offset=90)], "begins at offset 90, and the receipt at 100"),
        ([producer(current_txn_start_offset=-1)], "begins at offset -1"),
    ],
)
def test_another_story_is_a_second_writer(producers: list[ProducerState], sentence: str) -> None:
    with pytest.raises(GuardFailed, match=f"out-0.*{sentence}"):
        check_producer(receipt(), producers)


# Acknowledged offsets rise, from where the partition ended.


P3 = TopicPartition("out", 3)


def test_offsets_may_have_gaps_for_what_others_wrote() -> None:
    offsets = RisingOffsets(P3, end_offset=100)

    offsets.accept(100, records=5)
    offsets.accept(105, records=5)
    offsets.accept(300, records=1)

    assert (offsets.base_offset, offsets.next_offset) == (100, 301)


def test_an_offset_from_before_the_attempt_is_somebody_elses() -> None:
    offsets = RisingOffsets(P3, end_offset=100)

    with pytest.raises(GuardFailed, match=r"out-3.*offset 99, before 100"):
        offsets.accept(99, records=5)


def test_an_offset_that_does_not_rise_is_somebody_elses() -> None:
    offsets = RisingOffsets(P3, end_offset=100)
    offsets.accept(100, records=5)

    with pytest.raises(GuardFailed, match="offset 104, before 105"):
        offsets.accept(104, records=5)


# Attempts differ in the size of their first batch.


def test_attempts_that_follow_each_other_have_different_first_batches() -> None:
    sizes = [first_batch_records_max(salt) for salt in range(RECORDS_MAX)]

    assert sorted(sizes) == list(range(1, RECORDS_MAX + 1))


@pytest.mark.parametrize("available", [2, 3, 10, 250, 251, 252, 100_000])
def test_a_first_batch_never_takes_all_that_is_there(available: int) -> None:
    """If it did, two attempts with few records would look the same again."""
    sizes = {first_batch_records_max(salt, available=available) for salt in range(1_000)}

    assert sizes == set(range(1, min(RECORDS_MAX, available - 1) + 1))


def test_a_single_record_is_its_own_first_batch() -> None:
    assert first_batch_records_max(77, available=1) == 1
