"""Beheaded: the log begins later than anybody asked for."""

from __future__ import annotations

from tidelog.judge.history import Anomaly, FinalLog, History, Read
from tidelog.judge.lone_broker.ledger import walk


def beheaded(history: History) -> list[Anomaly]:
    """Records leave the head of a log by retention or by DeleteRecords, never by themselves."""
    return [
        Anomaly(
            check="beheaded",
            at_us=operation.at_us,
            partition=operation.partition,
            evidence=f"the log starts at {operation.log_start_offset}, "
            f"nobody deleted above {ledger.head_offset_max}",
        )
        for operation, ledger in walk(history)
        if isinstance(operation, Read | FinalLog)
        and not ledger.may_begin_at(operation.log_start_offset)
    ]
