"""The states of a transactional producer, and which may follow which: one table, one door."""

from __future__ import annotations

from enum import Enum, auto
from typing import Final


class TransactionManagerState(Enum):
    """Where a producer is between `init_transactions` and the end of a transaction."""

    UNINITIALIZED = auto()
    INITIALIZING = auto()
    """An InitProducerId is needed, the first or one for the next producer epoch."""
    READY = auto()
    IN_TRANSACTION = auto()
    COMMITTING = auto()
    ABORTING = auto()
    ABORTABLE_ERROR = auto()
    """This transaction cannot be committed; an abort makes the producer ready again."""
    FATAL_ERROR = auto()
    """This producer writes nothing any more."""


_S = TransactionManagerState
NEXT: Final[dict[TransactionManagerState, frozenset[TransactionManagerState]]] = {
    _S.UNINITIALIZED: frozenset({_S.INITIALIZING, _S.FATAL_ERROR}),
    # A refusal that says nothing about the id: the program may call init_transactions again.
    _S.INITIALIZING: frozenset({_S.READY, _S.UNINITIALIZED, _S.FATAL_ERROR}),
    _S.READY: frozenset({_S.IN_TRANSACTION, _S.FATAL_ERROR}),
    _S.IN_TRANSACTION: frozenset({_S.COMMITTING, _S.ABORTING, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    _S.COMMITTING: frozenset({_S.READY, _S.INITIALIZING, _S.ABORTABLE_ERROR, _S.FATAL_ERROR}),
    # An abort that fails is fatal: a second one would fail in the same way.
    _S.ABORTING: frozenset({_S.READY, _S.INITIALIZING, _S.FATAL_ERROR}),
    _S.ABORTABLE_ERROR: frozenset({_S.ABORTING, _S.FATAL_ERROR}),
    _S.FATAL_ERROR: frozenset(),
}
assert set(NEXT) == set(TransactionManagerState)

COMPLETING: Final = frozenset({_S.COMMITTING, _S.ABORTING})
"""The program waits for the end: nothing lingers."""
ABANDONED: Final = frozenset({_S.ABORTABLE_ERROR, _S.ABORTING})
"""Records that have not left are given up."""
OPEN: Final = frozenset({_S.IN_TRANSACTION, _S.ABORTABLE_ERROR})
"""An abort is due before the producer goes."""


def become(old: TransactionManagerState, new: TransactionManagerState) -> TransactionManagerState:
    """The only way a producer changes its state."""
    assert new in NEXT[old], f"{old.name} may not become {new.name}"
    return new
