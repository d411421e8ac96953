"""Asks a transaction's coordinator whether partitions belong to it, before its first append there.

Without the question a write that was delayed until after the end of its transaction would open one
that nobody ends (KIP-890). Clients of the older protocol have added the partition before, and it is
verified; for newer ones the same question adds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.model.topic_name import TRANSACTIONS_TOPIC
from tidelog.core.node.coordinators.broker_links import BrokerLinks
from tidelog.core.node.metadata import cluster_view
from tidelog.core.transactions.transaction_calls import PartitionErrors
from tidelog.core.transactions.transaction_metadata import Partition
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from tidelog.core.wire.schema import Message

VERSION = 5

Then = Callable[[PartitionErrors, int], None]


class TransactionVerifier:
    """Inputs: verify. Keeps nothing: what an answer is good for, the partition's log remembers."""

    def __init__(
        self,
        *,
        image: ClusterImage,
        links: BrokerLinks,
        partition_of: Callable[[str], int],
    ) -> None:
        self._image = image
        self._links = links
        self._partition_of = partition_of

    def verify(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: Iterable[Partition],
        *,
        adds_partitions: bool,
        then: Then,
        now_ms: int,
    ) -> None:
        """`then` gets an error for each partition, NONE if it belongs to the transaction."""
        wanted = sorted(partitions)

        def on_answer(answer: Message | NoAnswer, now_ms: int) -> None:
            errors = dict.fromkeys(wanted, ErrorCode.NETWORK_EXCEPTION)
            if isinstance(answer, AddPartitionsToTxnResponse):
                errors = dict.fromkeys(wanted, ErrorCode(answer.error_code))
                for result in answer.results_by_transaction:
                    for topic in result.topic_results:
                        for each in topic.results_by_partition:
                            code = ErrorCode(each.partition_error_code)
                            errors[topic.name, each.partition_index] = _for_producers(code)
            then(errors, now_ms)

        index = self._partition_of(transactional_id)
        state = self._image.partition(TRANSACTIONS_TOPIC, index)
        if (
            state is None
            or state.leader is None
            or not cluster_view.is_online(self._image, state.leader)
        ):
            then(dict.fromkeys(wanted, ErrorCode.COORDINATOR_NOT_AVAILABLE), now_ms)
            return
        transaction = AddPartitionsToTxnTransaction(
            transactional_id=transactional_id,
            producer_id=producer.producer_id,
            producer_epoch=producer.producer_epoch,
            verify_only=not adds_partitions,
            topics=_topics(wanted),
        )
        request = AddPartitionsToTxnRequest(transactions=[transaction])
        self._links.ask(state.leader, request, VERSION, on_answer, now_ms)


def _for_producers(code: ErrorCode) -> ErrorCode:
    """Producers take PRODUCER_FENCED for the end; here it means that a newer one is at work."""
    return ErrorCode.INVALID_PRODUCER_EPOCH if code is ErrorCode.PRODUCER_FENCED else code


def _topics(partitions: list[Partition]) -> list[AddPartitionsToTxnTopic]:
    by_topic: dict[str, list[int]] = {}
    for topic, index in partitions:
        by_topic.setdefault(topic, []).append(index)
    return [
        AddPartitionsToTxnTopic(name=topic, partitions=indexes)
        for topic, indexes in by_topic.items()
    ]
