"""EndTxn: commit and abort in both protocols, seen by readers of committed records."""

from __future__ import annotations

import pytest

from tests.unit.core.node.coordinators.transaction_broker import TransactionBroker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest
from tidelog.core.wire.record_batch import batches


def values_end(broker: TransactionBroker) -> int:
    """Where what a read_committed consumer gets of partition 0 ends."""
    headers = [header for _, header in batches(memoryview(broker.fetch().records))]
    return headers[-1].end_offset if headers else 0


@pytest.mark.scenario("D4-T5", "D4-T6", "D4-T8")
@pytest.mark.parametrize("commit", [True, False])
def test_the_classic_protocol(commit: bool) -> None:
    broker = TransactionBroker()
    producer = broker.producer()
    assert broker.add(producer, 0, 1) == [0, 0]
    assert broker.produce(producer, 0) == broker.produce(producer, 1) == ErrorCode.NONE
    assert broker.last_stable_offset() == 0
    assert values_end(broker) == 0

    assert broker.end(producer, commit=commit).error_code == ErrorCode.NONE

    assert broker.last_stable_offset(0) == broker.last_stable_offset(1) == 2
    fetched = broker.fetch()
    aborted = [(each.producer_id, each.first_offset) for each in fetched.aborted_transactions or []]
    assert aborted == ([] if commit else [(producer.producer_id, 0)])
    assert values_end(broker) == 2


@pytest.mark.parametrize("commit", [True, False])
def test_with_an_epoch_per_transaction_the_answer_has_the_next_one(commit: bool) -> None:
    broker = TransactionBroker()
    producer = broker.producer()
    for round_ in range(3):
        assert broker.produce(producer, 0, 0, version=12) == ErrorCode.NONE
        answer = broker.end(producer, commit=commit, version=5)
        assert answer.error_code == ErrorCode.NONE
        assert (answer.producer_id, answer.producer_epoch) == (
            producer.producer_id,
            producer.producer_epoch + 1,
        )
        assert broker.end(producer, commit=commit, version=5).error_code == ErrorCode.NONE
        producer = ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
        assert broker.last_stable_offset() == 2 * (round_ + 1)


def test_the_next_transaction_begins_while_markers_are_written() -> None:
    """No CONCURRENT_TRANSACTIONS: the request waits for the few milliseconds that it takes."""
    broker = TransactionBroker()
    producer = broker.producer()
    for _ in range(5):
        assert broker.add(producer, 0) == [ErrorCode.NONE]
        assert broker.end(producer).error_code == ErrorCode.NONE


@pytest.mark.parametrize("version", [0, 4, 5])
def test_what_cannot_be_ended(version: int) -> None:
    broker = TransactionBroker()
    zombie = broker.producer()
    producer = broker.producer()
    fenced = ErrorCode.INVALID_PRODUCER_EPOCH if version < 2 else ErrorCode.PRODUCER_FENCED

    stale = broker.end(zombie, version=version).error_code
    assert stale == (fenced if version < 5 else ErrorCode.PRODUCER_FENCED)
    assert broker.end(producer, version=version).error_code == ErrorCode.INVALID_TXN_STATE
    stranger = producer._replace(producer_id=4711)
    unknown = broker.end(stranger, version=version).error_code
    assert unknown == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    assert broker.ask(EndTxnRequest(), version).error_code == ErrorCode.INVALID_REQUEST


def test_a_timeout_ends_it_and_fences_the_producer() -> None:
    broker = TransactionBroker(
        {"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}
    )
    answer = broker.init(timeout_ms=500)
    producer = ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)
    broker.add(producer, 0)
    broker.produce(producer)

    broker.broker.pause(2_000)

    assert broker.last_stable_offset() == 2
    assert broker.end(producer).error_code == ErrorCode.PRODUCER_FENCED
    assert broker.produce(producer, sequence=1) == ErrorCode.INVALID_PRODUCER_EPOCH
