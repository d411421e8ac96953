"""AddOffsetsToTxn: a group's partition of `__consumer_offsets` joins the transaction."""

from __future__ import annotations

from tests.unit.core.node.coordinators.transaction_broker import ID, TransactionBroker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.core.wire.messages.api_25_add_offsets_to_txn import AddOffsetsToTxnRequest
from tidelog.core.wire.messages.api_65_describe_transactions import DescribeTransactionsRequest


def test_the_partition_of_the_group_belongs_to_the_transaction() -> None:
    broker = TransactionBroker()

    assert broker.add_offsets(broker.producer()) == ErrorCode.NONE

    (state,) = broker.ask(DescribeTransactionsRequest(transactional_ids=[ID]), 0).transaction_states
    (topic,) = state.topics
    expected = [broker.node.group_coordinator.partition_of("g")]
    assert (topic.topic, topic.partitions) == (OFFSETS_TOPIC, expected)


def test_strangers_and_zombies_are_refused() -> None:
    broker = TransactionBroker()
    zombie = broker.producer()
    broker.producer()

    assert broker.add_offsets(zombie) == ErrorCode.PRODUCER_FENCED
    assert broker.ask(AddOffsetsToTxnRequest(), 3).error_code == ErrorCode.INVALID_REQUEST
    stranger = zombie._replace(producer_id=4711)
    assert broker.add_offsets(stranger) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
