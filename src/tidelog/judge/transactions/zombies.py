"""A zombie's write never counts: who has lost its transactional id is answered no."""

from __future__ import annotations

from tidelog.judge.anomalies import ZOMBIE_WRITE, Anomaly
from tidelog.judge.history import CallOutcome
from tidelog.judge.transactions.transaction_history import (
    OffsetsInTransaction,
    ProducerBegan,
    TransactionalWrite,
    TransactionBegan,
    TransactionEnd,
    TransactionHistory,
)


def zombie_write(history: TransactionHistory) -> list[Anomaly]:
    """Requests answered ok that were sent after another producer was given the id."""
    began = {it.transaction: it for it in history if isinstance(it, TransactionBegan)}
    successors = [it for it in history if isinstance(it, ProducerBegan)]
    found = []
    for operation in history:
        if not isinstance(operation, TransactionalWrite | OffsetsInTransaction | TransactionEnd):
            continue
        mine = began.get(operation.transaction)
        if mine is None or operation.outcome is not CallOutcome.OK:
            continue
        for later in successors:
            if (
                later.transactional_id == mine.transactional_id
                and _fences(later, mine)
                and later.at_us < operation.invoked_us
            ):
                found.append(
                    ZOMBIE_WRITE.found(
                        at_us=operation.at_us,
                        partition="-"
                        if isinstance(operation, TransactionEnd)
                        else operation.partition,
                        transaction=mine.transaction,
                        producer=mine.producer,
                        identity=tuple(mine.identity),
                        later=later.producer,
                        later_identity=tuple(later.identity),
                        request=type(operation).__name__,
                    )
                )
                break
    return found


def _fences(later: ProducerBegan, mine: TransactionBegan) -> bool:
    """By its epoch; a producer id of its own is newer if it was asked for later."""
    if later.identity.producer_id == mine.identity.producer_id:
        return later.identity.producer_epoch > mine.identity.producer_epoch
    return later.invoked_us > mine.at_us
