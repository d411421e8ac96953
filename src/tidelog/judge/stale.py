"""Stale: an answer from a leadership that the asker knew to be over, or one that hides the end."""

from __future__ import annotations

from tidelog.judge.excuses import Excuses
from tidelog.judge.history import Acks, Anomaly, EndAsked, FinalLog, History, Outcome, Read, Wrote


def stale(history: History, excuses: Excuses) -> list[Anomaly]:
    """Two rules.

    Whoever says which leader epoch it knows is never answered in an earlier one (KIP-320). And the
    end that a leader tells covers every record of its own and of earlier leader epochs that was
    acknowledged with acks=all before anybody asked (KIP-207: until it knows, it says so). A deposed
    leader may tell an old end to whoever does not know better: of later epochs it knows nothing,
    nor of what a successor commits of its own records.
    """
    return [*_deposed(history), *_hidden(history, excuses)]


def _deposed(history: History) -> list[Anomaly]:
    found = []
    for operation in history:
        if isinstance(operation, Read):
            served = operation.served_leader_epoch
        elif isinstance(operation, EndAsked):
            served = operation.leader_epoch
        else:
            continue
        known = operation.known_leader_epoch
        if served is not None and known is not None and served < known:
            found.append(
                Anomaly(
                    check="stale",
                    at_us=operation.at_us,
                    partition=operation.partition,
                    evidence=f"{operation.reader} knew leader epoch {known}, "
                    f"and was answered in leader epoch {served}",
                )
            )
    return found


def _hidden(history: History, excuses: Excuses) -> list[Anomaly]:
    leader_epochs = {
        (op.partition, record.payload): record.leader_epoch
        for op in history
        if isinstance(op, Read | FinalLog)
        for record in op.records
        if record.leader_epoch is not None
    }
    acknowledged: dict[str, list[tuple[Wrote, int, int]]] = {}
    found = []
    for operation in history:
        if isinstance(operation, Wrote):
            is_firm = operation.outcome is Outcome.OK and operation.acks is Acks.ALL
            if is_firm and operation.base_offset is not None:
                leader_epoch = leader_epochs.get((operation.partition, operation.payloads[-1]))
                end_offset = operation.base_offset + len(operation.payloads)
                if leader_epoch is not None:
                    acknowledged.setdefault(operation.partition, []).append(
                        (operation, end_offset, leader_epoch)
                    )
        elif isinstance(operation, EndAsked) and operation.leader_epoch is not None:
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
                    found.append(_anomaly(operation, end_offset))
                    break
    return found


def _anomaly(asked: EndAsked, end_offset: int) -> Anomaly:
    return Anomaly(
        check="stale",
        at_us=asked.at_us,
        partition=asked.partition,
        evidence=f"{asked.reader} was told the end {asked.end_offset} in leader epoch "
        f"{asked.leader_epoch}; everything before {end_offset} was acknowledged before",
    )
