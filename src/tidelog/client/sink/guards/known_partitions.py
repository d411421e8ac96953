"""A partition of the transaction without a receipt was written by somebody who reported nothing.

1. Attempt 1 of a task writes records to partition 3 and dies.
2. Attempt 2 reads its input in another order, and has nothing for partition 3.
3. Nobody has a receipt for partition 3, and the commit would publish what attempt 1 wrote.
"""

from __future__ import annotations

from collections.abc import Container

from tidelog.client.producer.batch import ProducerIdentity
from tidelog.client.sink.errors import Fenced, GuardFailed
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_65_describe_transactions import TransactionState

OFFSETS_TOPIC = "__consumer_offsets"
"""Where the marker itself is written."""


def check_partitions(
    state: TransactionState, identity: ProducerIdentity, reported: Container[TopicPartition]
) -> None:
    """GuardFailed if the transaction has a partition that nobody reported."""
    if (state.producer_id, state.producer_epoch) != identity:
        raise Fenced(
            f"{state.transactional_id} belongs to producer {state.producer_id} epoch"
            f" {state.producer_epoch} now, and this batch has {identity.producer_id} epoch"
            f" {identity.producer_epoch}"
        )
    for topic in state.topics:
        for index in sorted(topic.partitions):
            place = TopicPartition(topic.topic, index)
            if topic.topic != OFFSETS_TOPIC and place not in reported:
                raise GuardFailed(
                    f"{place} was added to the transaction, and no task has a receipt for it"
                )
