"""WriteTxnMarkers: the end of a transaction in a log, whoever asks for it."""

from __future__ import annotations

import pytest

from tests.unit.core.node.coordinators.transaction_broker import TOPIC, TransactionBroker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.node.api import api_27_write_txn_markers as api
from tidelog.core.wire.messages.api_27_write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)


def write(
    broker: TransactionBroker,
    producer: ProducerIdAndEpoch,
    *indexes: int,
    coordinator_epoch: int = 0,
    transaction_version: int = 0,
    version: int = 2,
) -> list[int]:
    marker = WritableTxnMarker(
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        transaction_result=False,
        topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=list(indexes))],
        coordinator_epoch=coordinator_epoch,
        transaction_version=transaction_version,
    )
    answer = broker.ask(WriteTxnMarkersRequest(markers=[marker]), version)
    (result,) = answer.markers
    assert result.producer_id == producer.producer_id
    return [each.error_code for topic in result.topics for each in topic.partitions]


@pytest.mark.parametrize("version", api.VERSIONS)
def test_an_administrator_ends_a_transaction(version: int) -> None:
    broker = TransactionBroker()
    producer = broker.producer()
    broker.add(producer, 0)
    broker.produce(producer)

    assert write(broker, producer, 0, version=version) == [ErrorCode.NONE]

    assert broker.last_stable_offset() == 2


def test_partitions_that_are_not_here_and_markers_of_nothing() -> None:
    broker = TransactionBroker()
    producer = broker.producer()

    assert write(broker, producer, 9, 1) == [
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NONE,
    ]
    assert broker.ask(WriteTxnMarkersRequest(), 2).markers == []


def test_an_older_epoch_of_producer_or_coordinator_is_refused() -> None:
    broker = TransactionBroker()
    zombie = broker.producer()
    producer = broker.producer()
    assert write(broker, producer, 0, coordinator_epoch=3) == [ErrorCode.NONE]

    assert write(broker, zombie, 0, coordinator_epoch=3) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    older = write(broker, producer, 0, coordinator_epoch=2)
    assert older == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]


def test_with_an_epoch_per_transaction_a_marker_ends_only_the_one_before() -> None:
    """A marker that is repeated after the next transaction has begun must not end that one."""
    broker = TransactionBroker()
    producer = broker.producer()
    broker.produce(producer, version=12)
    following = producer._replace(producer_epoch=producer.producer_epoch + 1)
    assert write(broker, following, 0, transaction_version=2) == [ErrorCode.NONE]
    assert write(broker, following, 0, transaction_version=2) == [ErrorCode.NONE], "a retry"
    broker.end(producer, commit=False, version=5)
    assert broker.produce(following, version=12) == ErrorCode.NONE

    late = write(broker, following, 0, transaction_version=2)

    assert late == [ErrorCode.INVALID_PRODUCER_EPOCH]
