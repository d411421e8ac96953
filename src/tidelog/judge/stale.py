"""Stale: an answer from a leader that the client knew to be deposed, or one that hides records."""

from __future__ import annotations

from tidelog.judge.anomalies import STALE, Anomaly
from tidelog.judge.excuses import Excuses
from tidelog.judge.history import (
    CallOutcome,
    EndOffsetListed,
    FinalLog,
    History,
    RecordsRead,
    WriteAcks,
    Wrote,
)


def stale(history: History, excuses: Excuses) -> list[Anomaly]:
    """Answers from deposed leaders, and ends of the log that leave out acknowledged records.

    A client that says which leader epoch it knows is never answered in an earlier one (KIP-320).
    And the end that a leader gives covers every record of its own and of earlier leader epochs that
    was acknowledged with acks=all before the question (KIP-207: until the leader knows, it says
    so). A deposed leader may give an old end to a client that does not know better: of later epochs
    it knows nothing, nor of what a successor commits of its own records.
    """
    return [*_deposed(history), *_hidden(history, excuses)]


def _deposed(history: History) -> list[Anomaly]:
    found = []
    for operation in history:
        if isinstance(operation, RecordsRead):
            served = operation.served_leader_epoch
        elif isinstance(operation, EndOffsetListed):
            served = operation.leader_epoch
        else:
            continue
        known = operation.known_leader_epoch
        if served is not None and known is not None and served < known:
            found.append(
                STALE.found(
                    at_us=operation.at_us,
                    partition=operation.partition,
                    reader=operation.reader,
                    known_leader_epoch=known,
                    leader_epoch=served,
                )
            )
    return found


def _hidden(history: History, excuses: Excuses) -> list[Anomaly]:
    leader_epochs = {
        (op.partition, record.payload): record.leader_epoch
        for op in history
        if isinstance(op, RecordsRead | FinalLog)
        for record in op.records
        if record.leader_epoch is not None
    }
    acknowledged: dict[str, list[tuple[Wrote, int, int]]] = {}
    found = []
    for operation in history:
        if isinstance(operation, Wrote):
            is_firm = operation.outcome is CallOutcome.OK and operation.acks is WriteAcks.ALL
            if is_firm and operation.base_offset is not None:
                leader_epoch = leader_epochs.get((operation.partition, operation.payloads[-1]))
                end_offset = operation.base_offset + len(operation.payloads)
                if leader_epoch is not None:
                    acknowledged.setdefault(operation.partition, []).append(
                        (operation, end_offset, leader_epoch)
                    )
        elif isinstance(operation, EndOffsetListed) and operation.leader_epoch is not None:
            for write, end_offset, leader_epoch in acknowledged.get(operation.partition, ()):
                if (
                    write.at_us <= operation.invoked_us
                    and end_offset > operation.end_offset
                    and leader_epoch <= operation.leader_epoch
                    and not excuses.had_successor(
                        operation.partition, operation.leader_epoch, by_us=write.at_us
                    )
                    and not excuses.committed_may_go(
                        operation.partition,
                        end_offset - 1,
                        since_us=write.invoked_us,
                        until_us=operation.at_us,
                    )
                ):
                    found.append(
                        STALE.found(
                            at_us=operation.at_us,
                            partition=operation.partition,
                            reader=operation.reader,
                            end_offset=operation.end_offset,
                            leader_epoch=operation.leader_epoch,
                            acknowledged_end_offset=end_offset,
                        )
                    )
                    break
    return found
