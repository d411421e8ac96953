"""What becomes of a transactional producer's calls, and the ticket that says so."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import NamedTuple

from tidelog.core.model.ids import ProducerIdAndEpoch


class TransactionOperation(Enum):
    """A call of the program that waits for the cluster, by its name."""

    INIT_TRANSACTIONS = "init_transactions"
    SEND_OFFSETS = "send_offsets_to_transaction"
    COMMIT = "commit_transaction"
    ABORT = "abort_transaction"


class FailureKind(Enum):
    """What a program can do about a failure."""

    ABORTABLE = "abort the transaction, then begin another"
    FATAL = "close this producer"
    REINITIALIZE = "call init_transactions again"


class TransactionOk(NamedTuple):
    """The cluster has done it; for a transaction, under this identity."""

    identity: ProducerIdAndEpoch | None


class TransactionFailed(NamedTuple):
    """Why a call did not succeed."""

    error: str
    """Kafka's name of it, or one of this side's."""
    reason: str
    kind: FailureKind
    is_unknown: bool = False
    """A commit was sent and not clearly refused: the transaction may be committed."""


TransactionOutcome = TransactionOk | TransactionFailed
OnTransactionOutcome = Callable[["TransactionTicket", int], None]


class TransactionTicket:
    """One call under way; it gets its outcome once."""

    __slots__ = ("_then", "operation", "outcome")

    def __init__(self, operation: TransactionOperation, then: OnTransactionOutcome | None) -> None:
        self.operation = operation
        self.outcome: TransactionOutcome | None = None
        self._then = then

    @property
    def is_done(self) -> bool:
        return self.outcome is not None

    @property
    def is_ok(self) -> bool:
        return isinstance(self.outcome, TransactionOk)

    def complete(self, outcome: TransactionOutcome, now_ms: int) -> None:
        assert self.outcome is None, "a call has one outcome"
        self.outcome = outcome
        if self._then is not None:
            self._then(self, now_ms)
