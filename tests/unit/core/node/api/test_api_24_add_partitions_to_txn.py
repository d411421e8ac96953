"""AddPartitionsToTxn: clients add partitions, leaders ask for clients."""

from __future__ import annotations

import pytest

from tests.unit.core.node.coordinators.transaction_broker import ID, TOPIC, TransactionBroker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.node.api import api_24_add_partitions_to_txn as api
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)


@pytest.fixture(name="broker", scope="module")
def a_broker() -> TransactionBroker:
    return TransactionBroker()


def ask_as_broker(
    broker: TransactionBroker,
    producer: ProducerIdAndEpoch,
    *indexes: int,
    verify_only: bool,
    transactional_id: str = ID,
    version: int = 5,
) -> list[int]:
    transaction = AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        verify_only=verify_only,
        topics=[AddPartitionsToTxnTopic(name=TOPIC, partitions=list(indexes))],
    )
    answer = broker.ask(AddPartitionsToTxnRequest(transactions=[transaction]), version)
    (result,) = answer.results_by_transaction
    assert result.transactional_id == transactional_id
    (topic,) = result.topic_results
    return [each.partition_error_code for each in topic.results_by_partition]


@pytest.mark.parametrize("version", api.VERSIONS[: api.FIRST_VERSION_OF_BROKERS])
def test_a_producer_adds_partitions(version: int, broker: TransactionBroker) -> None:
    producer = broker.producer()

    assert broker.add(producer, 0, 1, version=version) == [ErrorCode.NONE, ErrorCode.NONE]
    assert broker.add(producer, 1, version=version) == [ErrorCode.NONE]


def test_one_unknown_partition_refuses_them_all(broker: TransactionBroker) -> None:
    codes = broker.add(broker.producer(), 0, 7)

    assert codes == [ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]


@pytest.mark.parametrize(
    ("version", "code"),
    [(1, ErrorCode.INVALID_PRODUCER_EPOCH), (2, ErrorCode.PRODUCER_FENCED)],
)
def test_a_fenced_producer_adds_nothing(
    version: int, code: ErrorCode, broker: TransactionBroker
) -> None:
    zombie = broker.producer()
    broker.producer()

    assert broker.add(zombie, 0, version=version) == [code]


def test_whoever_has_no_such_id_adds_nothing(broker: TransactionBroker) -> None:
    producer = broker.producer()._replace(producer_id=4711)

    assert broker.add(producer, 0) == [ErrorCode.INVALID_PRODUCER_ID_MAPPING]


@pytest.mark.parametrize("version", api.VERSIONS[api.FIRST_VERSION_OF_BROKERS :])
def test_a_leader_verifies_and_adds(version: int, broker: TransactionBroker) -> None:
    producer = broker.producer()
    broker.add(producer, 0)

    verified = ask_as_broker(broker, producer, 0, 1, verify_only=True, version=version)
    assert verified == [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]
    assert ask_as_broker(broker, producer, 1, verify_only=False) == [ErrorCode.NONE]
    assert ask_as_broker(broker, producer, 1, verify_only=True) == [ErrorCode.NONE]


@pytest.mark.parametrize("verify_only", [True, False])
def test_an_empty_id_is_no_request(verify_only: bool, broker: TransactionBroker) -> None:
    codes = ask_as_broker(
        broker, broker.producer(), 0, verify_only=verify_only, transactional_id=""
    )

    assert codes == [ErrorCode.INVALID_REQUEST]
