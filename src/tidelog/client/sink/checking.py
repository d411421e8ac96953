"""All guards at once, before the commit: the cluster must tell the same story as the receipts."""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.client.sink.asking import Ask
from tidelog.client.sink.conversation import Steps
from tidelog.client.sink.errors import BatchLost
from tidelog.client.sink.guards.known_partitions import check_partitions
from tidelog.client.sink.guards.one_receipt import receipts_by_partition
from tidelog.client.sink.guards.producer_state import check_producer
from tidelog.client.sink.requests import ask_producers, ask_transaction
from tidelog.client.sink.telling import must
from tidelog.client.sink.values import Begun, Receipt
from tidelog.core.wire.messages.api_61_describe_producers import DescribeProducersResponse
from tidelog.core.wire.messages.api_65_describe_transactions import DescribeTransactionsResponse


def check_batch(begun: Begun, receipts: Iterable[Receipt], *beside: Ask) -> Steps[None]:
    """SinkError unless the batch is what its tasks say. `beside` is asked for meanwhile."""
    by_partition = receipts_by_partition(begun, receipts)
    transaction, *told = yield (
        ask_transaction(begun.transactional_id),
        *beside,
        *(ask_producers(each) for each in by_partition),
    )
    state = must(transaction)
    assert isinstance(state, DescribeTransactionsResponse)
    if not state.transaction_states:
        raise BatchLost(f"nobody knows a transaction of {begun.transactional_id}")
    check_partitions(state.transaction_states[0], begun.identity, by_partition)
    for each in told[: len(beside)]:
        must(each)
    for receipt, each in zip(by_partition.values(), told[len(beside) :], strict=True):
        answer = must(each)
        assert isinstance(answer, DescribeProducersResponse)
        check_producer(receipt, answer.topics[0].partitions[0].active_producers)
