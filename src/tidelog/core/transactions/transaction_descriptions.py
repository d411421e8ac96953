"""Transactions as DescribeTransactions and ListTransactions show them.

An id that has expired is gone with its tombstone: what Kafka hides as "Dead" does not exist here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from tidelog.core.model.errors import ErrorCode
from tidelog.core.transactions.transaction_metadata import TransactionMetadata
from tidelog.core.transactions.transaction_shard import TransactionShard
from tidelog.core.transactions.transaction_state import BY_TITLE
from tidelog.core.wire.messages.api_65_describe_transactions import TopicData, TransactionState
from tidelog.core.wire.messages.api_66_list_transactions import ListedTransaction
from tidelog.core.wire.sentinels import NO_TIMESTAMP

_OTHER_STATES: Final = frozenset({"Dead", "PrepareEpochFence"})
"""Kafka knows them, and no transaction is ever listed with one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionFilters:
    """Which transactional ids are listed: those that pass all filters. Empty or None: all pass."""

    states: frozenset[str] = frozenset()
    producer_ids: frozenset[int] = frozenset()
    longer_than_ms: int | None = None
    matches_id: Callable[[str], bool] | None = None


def describe_transaction(shard: TransactionShard, transactional_id: str) -> TransactionState:
    """One transactional id, with the partitions that still wait for its end."""
    if not transactional_id:
        return TransactionState(error_code=ErrorCode.INVALID_REQUEST)
    metadata = shard.by_id.get(transactional_id)
    if metadata is None:
        return TransactionState(
            transactional_id=transactional_id, error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        )
    topics: dict[str, TopicData] = {}
    for topic, index in sorted(metadata.partitions):
        topics.setdefault(topic, TopicData(topic=topic)).partitions.append(index)
    return TransactionState(
        transactional_id=transactional_id,
        transaction_state=metadata.status.title,
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=_start_ms(metadata),
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=list(topics.values()),
    )


def list_transactions(
    shard: TransactionShard, filters: TransactionFilters, *, wall_ms: int
) -> list[ListedTransaction]:
    """The transactional ids of one partition that pass the filters."""
    return [
        ListedTransaction(
            transactional_id=transactional_id,
            producer_id=metadata.producer_id,
            transaction_state=metadata.status.title,
        )
        for transactional_id, metadata in shard.by_id.items()
        if _passes(filters, transactional_id, metadata, wall_ms)
    ]


def unknown_states(names: Iterable[str]) -> list[str]:
    """The names that are no state of a transaction, each once; case counts."""
    return [name for name in dict.fromkeys(names) if name not in BY_TITLE.keys() | _OTHER_STATES]


def _passes(
    filters: TransactionFilters, transactional_id: str, metadata: TransactionMetadata, wall_ms: int
) -> bool:
    """A state that is not known is a filter as well: alone it lets nothing pass."""
    if filters.producer_ids and metadata.producer_id not in filters.producer_ids:
        return False
    if filters.states and metadata.status.title not in filters.states:
        return False
    longer_than_ms = filters.longer_than_ms
    # As in Kafka an id that had no transaction yet counts as one that began before 1970.
    if longer_than_ms is not None and wall_ms - _start_ms(metadata) <= longer_than_ms:
        return False
    return filters.matches_id is None or filters.matches_id(transactional_id)


def _start_ms(metadata: TransactionMetadata) -> int:
    return NO_TIMESTAMP if metadata.start_wall_ms is None else metadata.start_wall_ms
