"""DescribeTransactions: several transactional ids, each from its own partition."""

from __future__ import annotations

from tests.unit.core.node.api.group_node import GroupNode
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.wire.messages.api_10_find_coordinator import FindCoordinatorRequest
from tidelog.core.wire.messages.api_19_create_topics import CreatableTopic, CreateTopicsRequest
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from tidelog.core.wire.messages.api_65_describe_transactions import (
    DescribeTransactionsRequest,
    TopicData,
    TransactionState,
)

NAMES = ["a", "b", "c", "d", "e"]
TIMEOUT_MS = 30_000
TRANSACTION_KEY_TYPE = 1


class TransactionNode(GroupNode):
    """A node that coordinates transactions, with a topic `orders` for them to write to."""

    def __init__(self) -> None:
        super().__init__(has_topic=False, transaction_state_log_num_partitions="3")
        topic = CreatableTopic(name="orders", num_partitions=2, replication_factor=1)
        created = self.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7)
        assert created.topics[0].error_code == ErrorCode.NONE
        lookup = FindCoordinatorRequest(key_type=TRANSACTION_KEY_TYPE, coordinator_keys=NAMES)
        self.ask(lookup, 4)

    def begin(self, name: str) -> ProducerIdAndEpoch:
        request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=TIMEOUT_MS)
        answer = self.ask(request, 4)
        assert answer.error_code == ErrorCode.NONE
        return ProducerIdAndEpoch(answer.producer_id, answer.producer_epoch)

    def add(self, name: str, producer: ProducerIdAndEpoch, *indexes: int) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer.producer_id,
            v3_and_below_producer_epoch=producer.producer_epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name="orders", partitions=[*indexes])],
        )
        [topic] = self.ask(request, 3).results_by_topic_v3_and_below
        assert {it.partition_error_code for it in topic.results_by_partition} == {ErrorCode.NONE}


def test_transactions_come_in_the_order_of_the_request() -> None:
    node = TransactionNode()
    producers = {name: node.begin(name) for name in NAMES}
    answer = node.ask(DescribeTransactionsRequest(transactional_ids=[*reversed(NAMES)]), 0)
    assert answer.transaction_states == [
        TransactionState(
            transactional_id=name,
            transaction_state="Empty",
            transaction_timeout_ms=TIMEOUT_MS,
            transaction_start_time_ms=-1,
            producer_id=producers[name].producer_id,
            producer_epoch=producers[name].producer_epoch,
        )
        for name in reversed(NAMES)
    ]


def test_an_open_transaction_has_its_start_and_its_partitions() -> None:
    node = TransactionNode()
    producer = node.begin("a")
    node.add("a", producer, 1, 0)
    [state] = node.ask(DescribeTransactionsRequest(transactional_ids=["a"]), 0).transaction_states
    assert state.transaction_state == "Ongoing"
    assert state.transaction_start_time_ms == node.world.node.wall_ms(node.world.now_ms)
    assert state.topics == [TopicData(topic="orders", partitions=[0, 1])]


def test_what_is_no_id_is_an_error_of_its_own() -> None:
    node = TransactionNode()
    node.begin("a")
    answer = node.ask(DescribeTransactionsRequest(transactional_ids=["", "b", "a"]), 0)
    assert [it.error_code for it in answer.transaction_states] == [
        ErrorCode.INVALID_REQUEST,
        ErrorCode.TRANSACTIONAL_ID_NOT_FOUND,
        ErrorCode.NONE,
    ]


def test_a_node_without_their_partitions_says_so_for_each() -> None:
    node = GroupNode(has_topic=False)
    answer = node.ask(DescribeTransactionsRequest(transactional_ids=["a", "", "b"]), 0)
    assert [it.error_code for it in answer.transaction_states] == [
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NOT_COORDINATOR,
    ]
