"""The states of a transactional id, and which may follow which: one table, one door."""

from __future__ import annotations

from enum import Enum
from typing import Final


class TransactionStatus(Enum):
    """Kafka's number in the log and its name in descriptions."""

    EMPTY = (0, "Empty")
    ONGOING = (1, "Ongoing")
    PREPARE_COMMIT = (2, "PrepareCommit")
    PREPARE_ABORT = (3, "PrepareAbort")
    COMPLETE_COMMIT = (4, "CompleteCommit")
    COMPLETE_ABORT = (5, "CompleteAbort")

    def __init__(self, number: int, title: str) -> None:
        self.number = number
        self.title = title


_S = TransactionStatus
NEXT: Final[dict[TransactionStatus, frozenset[TransactionStatus]]] = {
    # An abort without any partition exists since the producer epoch rises with each transaction:
    # a client that does not know whether it wrote anything asks for it.
    _S.EMPTY: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT}),
    _S.ONGOING: frozenset({_S.ONGOING, _S.PREPARE_COMMIT, _S.PREPARE_ABORT}),
    _S.PREPARE_COMMIT: frozenset({_S.COMPLETE_COMMIT}),  # decided: no way back
    _S.PREPARE_ABORT: frozenset({_S.COMPLETE_ABORT}),
    _S.COMPLETE_COMMIT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT}),
    _S.COMPLETE_ABORT: frozenset({_S.EMPTY, _S.ONGOING, _S.PREPARE_ABORT}),
}
assert set(NEXT) == set(TransactionStatus)

PREPARED: Final = frozenset({_S.PREPARE_COMMIT, _S.PREPARE_ABORT})
"""Decided; markers are on their way."""
EXPIRABLE: Final = frozenset({_S.EMPTY, _S.COMPLETE_COMMIT, _S.COMPLETE_ABORT})
"""No transaction is under way, so the id may be forgotten."""

BY_NUMBER: Final = {status.number: status for status in TransactionStatus}
BY_TITLE: Final = {status.title: status for status in TransactionStatus}


def become(old: TransactionStatus, new: TransactionStatus) -> TransactionStatus:
    """The only way a transaction changes its state."""
    assert new in NEXT[old], f"{old.title} may not become {new.title}"
    return new
