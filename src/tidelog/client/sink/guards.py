"""How a second writer is found out where Kafka itself would say nothing.

Kafka answers a batch with the same sequences and other bytes as a duplicate, silently. Two attempts
of one task would so be mixed. Each guard is a pure function or a small value, and alone enough to
refuse the batch; `check_batch` runs all that can be checked before the commit.
"""

from __future__ import annotations

from collections.abc import Container, Iterable

from tidelog.client.sink.conversation import Steps
from tidelog.client.sink.errors import BatchLost, Fenced, GuardFailed
from tidelog.client.sink.replies import require_answer
from tidelog.client.sink.requests import SinkCall, producers_call, transaction_call
from tidelog.client.sink.values import BatchTicket, Receipt
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition
from tidelog.core.model.limits import SEQUENCE_MODULUS
from tidelog.core.wire.messages.api_61_describe_producers import (
    DescribeProducersResponse,
    ProducerState,
)
from tidelog.core.wire.messages.api_65_describe_transactions import (
    DescribeTransactionsResponse,
    TransactionState,
)

OFFSETS_TOPIC = "__consumer_offsets"
"""Where the marker itself is written."""
RECORDS_MAX = 251
"""A prime, so that salts that count in steps differ for long."""


def check_batch(ticket: BatchTicket, receipts: Iterable[Receipt], *beside: SinkCall) -> Steps[None]:
    """Check the receipts against what the brokers know, before the commit; SinkError if they
    disagree. The calls `beside` are made at the same time, and must succeed as well."""
    by_partition = receipts_by_partition(ticket, receipts)
    transaction, *others = yield (
        transaction_call(ticket.transactional_id),
        *beside,
        *(producers_call(each) for each in by_partition),
    )
    answer = require_answer(transaction)
    assert isinstance(answer, DescribeTransactionsResponse)
    if not answer.transaction_states:
        raise BatchLost(f"nobody knows a transaction of {ticket.transactional_id}")
    check_partitions(answer.transaction_states[0], ticket.identity, by_partition)
    for reply in others[: len(beside)]:
        require_answer(reply)
    for receipt, reply in zip(by_partition.values(), others[len(beside) :], strict=True):
        answer = require_answer(reply)
        assert isinstance(answer, DescribeProducersResponse)
        check_producer(receipt, answer.topics[0].partitions[0].active_producers)


def receipts_by_partition(
    ticket: BatchTicket, receipts: Iterable[Receipt]
) -> dict[TopicPartition, Receipt]:
    """The receipts, if each is of this batch and of a partition of its own.

    Every partition of a batch has one writer: two receipts are two writers.
    """
    found: dict[TopicPartition, Receipt] = {}
    for receipt in receipts:
        partition = receipt.topic_partition
        if partition in found:
            raise GuardFailed(f"{partition} has two receipts: two tasks wrote it in one batch")
        if partition not in ticket.end_offsets:
            raise GuardFailed(f"{partition} has a receipt and is no partition of this sink")
        if (receipt.producer_id, receipt.producer_epoch) != ticket.identity:
            raise GuardFailed(
                f"{partition} has a receipt of producer {receipt.producer_id} epoch"
                f" {receipt.producer_epoch}, and this batch has {ticket.identity.producer_id} epoch"
                f" {ticket.identity.producer_epoch}"
            )
        found[partition] = receipt
    return found


def check_partitions(
    state: TransactionState, identity: ProducerIdAndEpoch, reported: Container[TopicPartition]
) -> None:
    """GuardFailed if the transaction has a partition that nobody reported.

    A partition of the transaction without a receipt was written by somebody who reported nothing:

      1. Attempt 1 of a task writes records to partition 3 and dies.
      2. Attempt 2 reads its input in another order, and has nothing for partition 3.
      3. Nobody has a receipt for partition 3, and the commit would publish what attempt 1 wrote.
    """
    if (state.producer_id, state.producer_epoch) != identity:
        raise Fenced(
            f"{state.transactional_id} belongs to producer {state.producer_id} epoch"
            f" {state.producer_epoch} now, and this batch has {identity.producer_id} epoch"
            f" {identity.producer_epoch}"
        )
    for topic in state.topics:
        for index in sorted(topic.partitions):
            partition = TopicPartition(topic.topic, index)
            if topic.topic != OFFSETS_TOPIC and partition not in reported:
                raise GuardFailed(
                    f"{partition} was added to the transaction, and no task has a receipt for it"
                )


def check_producer(receipt: Receipt, producers: list[ProducerState]) -> None:
    """GuardFailed unless the partition's leader remembers of this batch's producer what the
    receipt says.

    Whatever another writer added under the same identity has moved the last sequence, or begun the
    transaction earlier than our first record.
    """
    partition = receipt.topic_partition
    state = next((each for each in producers if each.producer_id == receipt.producer_id), None)
    if state is None:
        raise GuardFailed(f"{partition} knows nothing of producer {receipt.producer_id}")
    if state.producer_epoch != receipt.producer_epoch:
        raise GuardFailed(
            f"{partition} is at producer epoch {state.producer_epoch}, not {receipt.producer_epoch}"
        )
    last_sequence = (receipt.next_sequence - 1) % SEQUENCE_MODULUS
    if state.last_sequence != last_sequence:
        raise GuardFailed(
            f"{partition} is at sequence {state.last_sequence}, and the receipt ends at"
            f" {last_sequence}: another writer wrote under the same identity"
        )
    if state.current_txn_start_offset != receipt.base_offset:
        raise GuardFailed(
            f"{partition}: the transaction begins at offset {state.current_txn_start_offset}, and"
            f" the receipt at {receipt.base_offset}: another writer wrote under the same identity"
        )


class RisingOffsets:
    """Checks the acknowledged offsets of one partition's batches, in the order of their sequences.

    They only rise, from where the partition ended before the attempt. An acknowledgement with an
    offset from before is the answer to somebody else's batch: Kafka took ours for a repetition of
    it, and wrote nothing.
    """

    def __init__(self, partition: TopicPartition, *, end_offset: int) -> None:
        self._partition = partition
        self.base_offset: int | None = None
        self.next_offset = end_offset

    def accept(self, base_offset: int, *, records: int) -> None:
        if base_offset < self.next_offset:
            raise GuardFailed(
                f"{self._partition}: a batch was acknowledged at offset {base_offset}, before"
                f" {self.next_offset}, where it could be at the earliest: another writer wrote it"
            )
        if self.base_offset is None:
            self.base_offset = base_offset
        self.next_offset = base_offset + records


def first_batch_records_max(salt: int, *, available: int | None = None) -> int:
    """How many records an attempt's first batch may have; at least one.

    The first batch of every attempt has another number of records, so that no two look the same.
    Kafka takes a batch for a repetition when its first and its last sequence are those of one that
    it has, whatever its bytes are:

      1. Attempt 1 of a task writes its first batch, sequences 0 to 99, and dies.
      2. Attempt 2 reads its input in another order and writes its own first batch.
      3. With sequences 0 to 99 it would be acknowledged, and never be written: the partition would
         have 100 records of attempt 1 and the others of attempt 2. With 0 to 41 it is refused:
         error 45.

    `available` records are at hand: a first batch that takes all of them would hide the salt.
    """
    choices = RECORDS_MAX if available is None else max(1, min(RECORDS_MAX, available - 1))
    return 1 + salt % choices
