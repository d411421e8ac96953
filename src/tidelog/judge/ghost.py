"""Ghost: given to a reader, later absent or different at that offset."""

from __future__ import annotations

from tidelog.judge.excuses import Excuses
from tidelog.judge.history import Anomaly, FinalLog, History, Read, Seen


def ghost(history: History, excuses: Excuses) -> list[Anomaly]:
    """What one reader was given at an offset, every later reader and the final log have there.

    This is the model's read consistency: what is below a high watermark once stays for ever.
    """
    given: dict[str, dict[int, tuple[Seen, int]]] = {}
    found: list[Anomaly] = []
    for operation in history:
        if not isinstance(operation, Read | FinalLog):
            continue
        known = given.setdefault(operation.partition, {})
        records = {record.offset: record for record in operation.records}
        expected = sorted(known) if isinstance(operation, FinalLog) else records.keys() & known
        for offset in sorted(expected):
            before, since_us = known[offset]
            after = records.get(offset)
            if after is not None and after.payload == before.payload:
                continue
            is_deleted = after is None and offset < operation.log_start_offset
            if not is_deleted and not excuses.committed_may_go(
                operation.partition, offset, since_us=since_us, until_us=operation.at_us
            ):
                found.append(_anomaly(operation, before, after))
        if isinstance(operation, Read):
            for record in operation.records:
                if record.offset not in known or known[record.offset][0].payload != record.payload:
                    known[record.offset] = (record, operation.invoked_us)
    return found


def _anomaly(operation: Read | FinalLog, before: Seen, after: Seen | None) -> Anomaly:
    now = "nothing is there" if after is None else f"{after.payload!r} is there"
    return Anomaly(
        check="ghost",
        at_us=operation.at_us,
        partition=operation.partition,
        evidence=f"a reader was given {before.payload!r} at offset {before.offset}, now {now}",
    )
