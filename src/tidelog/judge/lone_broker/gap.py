"""Gap: a reader was not given a record that must be where it read."""

from __future__ import annotations

from tidelog.judge.history import Anomaly, History, Read, ReadRefused
from tidelog.judge.lone_broker.ledger import Ledger, walk


def gap(history: History) -> list[Anomaly]:
    """A record left out of an answer, an empty answer where one must be, or a false refusal."""
    found = []
    for operation, ledger in walk(history):
        if isinstance(operation, Read):
            complaint = _left_out(operation, ledger)
        elif isinstance(operation, ReadRefused):
            complaint = _falsely_refused(operation, ledger)
        else:
            continue
        if complaint is not None:
            found.append(
                Anomaly(
                    check="gap",
                    at_us=operation.at_us,
                    partition=operation.partition,
                    evidence=complaint,
                )
            )
    return found


def _left_out(read: Read, ledger: Ledger) -> str | None:
    if read.records:
        given = {record.offset for record in read.records}
        end_offset = read.records[-1].offset
        for offset in ledger.firm_offsets(read.start_offset, end_offset):
            if offset not in given:
                return f"offset {offset} left out of an answer from {read.start_offset} on"
        return None
    is_readable = read.log_start_offset <= read.start_offset < read.high_watermark
    if is_readable and read.corrupt_offset is None and ledger.is_firm(read.start_offset):
        return f"nothing given at {read.start_offset}, high watermark {read.high_watermark}"
    return None


def _falsely_refused(refused: ReadRefused, ledger: Ledger) -> str | None:
    if ledger.head_offset_max is None or refused.start_offset < ledger.head_offset_max:
        return None
    if ledger.is_firm(refused.start_offset, since_us=refused.invoked_us):
        return f"offset {refused.start_offset} is there, yet out of range"
    return None
