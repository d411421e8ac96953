"""Transactions in words: as JSON for programs and as columns for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from tidelog.cli.exit_codes import complain
from tidelog.cli.text_columns import columns

if TYPE_CHECKING:
    from tidelog.client.admin.transactions import OpenTransaction
    from tidelog.client.shells.transactions import DescribedTransaction, ListedTransactions

LIST_HEADER = ("transactional id", "coordinator", "producer id", "state")
DESCRIPTION_HEADER = (
    *("transactional id", "coordinator", "producer id", "producer epoch", "state"),
    *("timeout ms", "start ms", "running ms", "partitions"),
)
HANGING_HEADER = (
    *("topic", "partition", "producer id", "producer epoch", "coordinator epoch"),
    *("start offset", "last write ms", "minutes ago"),
)
_MINUTE_MS = 60_000


def listed_json(listed: ListedTransactions) -> list[dict[str, Any]]:
    return [
        {
            "transactional_id": each.transactional_id,
            "coordinator": coordinator,
            "producer_id": each.producer_id,
            "state": each.state,
        }
        for each, coordinator in listed.transactions.values()
    ]


def listed_text(listed: ListedTransactions) -> str:
    rows = [list(each.values()) for each in listed_json(listed)]
    return columns(LIST_HEADER, rows) if rows else "no transactions"


def described_json(described: DescribedTransaction, *, wall_ms: int) -> dict[str, Any]:
    it = described.description
    return {
        "transactional_id": it.transactional_id,
        "coordinator": described.coordinator,
        "producer_id": it.producer_id,
        "producer_epoch": it.producer_epoch,
        "state": it.state,
        "timeout_ms": it.timeout_ms,
        "start_ms": it.start_ms,
        "running_ms": None if it.start_ms is None else wall_ms - it.start_ms,
        "partitions": [str(each) for each in it.partitions],
    }


def described_text(described: Iterable[DescribedTransaction], *, wall_ms: int) -> str:
    rows = [list(described_json(each, wall_ms=wall_ms).values()) for each in described]
    return columns(DESCRIPTION_HEADER, rows) if rows else "no transactions"


def hanging_json(transaction: OpenTransaction) -> dict[str, Any]:
    return {
        "topic": transaction.partition.topic,
        "partition": transaction.partition.index,
        "producer_id": transaction.producer_id,
        "producer_epoch": transaction.producer_epoch,
        "coordinator_epoch": transaction.coordinator_epoch,
        "start_offset": transaction.start_offset,
        "last_timestamp_ms": transaction.last_timestamp_ms,
    }


def hanging_text(transactions: Iterable[OpenTransaction], *, wall_ms: int) -> str:
    rows = [
        [*hanging_json(each).values(), (wall_ms - each.last_timestamp_ms) // _MINUTE_MS]
        for each in transactions
    ]
    return columns(HANGING_HEADER, rows) if rows else "no hanging transactions"


def complain_of_silent(verb_name: str, listed: ListedTransactions) -> bool:
    """True if some broker did not answer."""
    for broker_id, reason in listed.silent.items():
        complain(verb_name, f"broker {broker_id} did not list its transactions: {reason}")
    return bool(listed.silent)
