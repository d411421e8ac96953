"""Every check of a history of transactions, and the judge that applies them all."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.judge.anomalies import Anomaly
from tidelog.judge.transactions.aborted_reads import aborted_but_read
from tidelog.judge.transactions.committed_whole import (
    committed_but_hidden,
    read_from_nowhere,
    read_twice,
)
from tidelog.judge.transactions.hanging_transactions import hanging_transaction
from tidelog.judge.transactions.stable_reads import stable_offset_back, undecided_read
from tidelog.judge.transactions.torn import torn_transaction
from tidelog.judge.transactions.transaction_history import TransactionHistory
from tidelog.judge.transactions.transactional_offsets import aborted_offsets
from tidelog.judge.transactions.transforms import transformed_once
from tidelog.judge.transactions.zombies import zombie_write

TRANSACTION_CHECKS: tuple[Callable[[TransactionHistory], list[Anomaly]], ...] = (
    committed_but_hidden,
    read_twice,
    read_from_nowhere,
    aborted_but_read,
    torn_transaction,
    undecided_read,
    stable_offset_back,
    hanging_transaction,
    zombie_write,
    aborted_offsets,
    transformed_once,
)


def judge_transactions(history: TransactionHistory) -> list[Anomaly]:
    """All anomalies, the earliest first."""
    found = [anomaly for check in TRANSACTION_CHECKS for anomaly in check(history)]
    return sorted(found, key=lambda anomaly: anomaly.at_us)
