"""Lost: answered ok, yet absent from the final log, and no excuse covers it."""

from __future__ import annotations

from tidelog.judge.excuses import Excuses
from tidelog.judge.history import Acks, Anomaly, FinalLog, History, Outcome, Read, Wrote


def lost(history: History, excuses: Excuses) -> list[Anomaly]:
    """Every write that was answered ok is in the final log of its partition."""
    finals = {op.partition: op for op in history if isinstance(op, FinalLog)}
    present = {
        (final.partition, record.payload) for final in finals.values() for record in final.records
    }
    committed_us = _committed_since(history)
    found = []
    for write in history:
        if not isinstance(write, Wrote) or write.outcome is not Outcome.OK:
            continue
        final = finals.get(write.partition)
        if final is None or write.base_offset is None or write.acks is Acks.NONE:
            continue
        for offset, payload in enumerate(write.payloads, write.base_offset):
            place = (write.partition, payload)
            if place in present or offset < final.log_start_offset:
                continue
            since_us = committed_us.get(place)
            if since_us is None:
                may_go = excuses.uncommitted_may_go(
                    write.partition, offset, since_us=write.invoked_us
                )
            else:
                may_go = excuses.committed_may_go(write.partition, offset, since_us=since_us)
            if not may_go:
                found.append(_anomaly(write, payload, offset, final))
    return found


def _committed_since(history: History) -> dict[tuple[str, str], int]:
    """When each record could first have been known as committed, by its partition and payload."""
    since: dict[tuple[str, str], int] = {}
    for operation in history:
        if isinstance(operation, Wrote):
            if operation.outcome is Outcome.OK and operation.acks is Acks.ALL:
                for payload in operation.payloads:
                    since.setdefault((operation.partition, payload), operation.invoked_us)
        elif isinstance(operation, Read):
            for record in operation.records:
                since.setdefault((operation.partition, record.payload), operation.invoked_us)
    return since


def _anomaly(write: Wrote, payload: str, offset: int, final: FinalLog) -> Anomaly:
    return Anomaly(
        check="lost",
        at_us=final.at_us,
        partition=write.partition,
        evidence=f"{payload!r} of {write.writer} was answered ok at offset {offset} "
        f"(acks={write.acks.value}), absent from [{final.log_start_offset}, {final.end_offset})",
    )
