"""Beheaded: the log begins later than anybody asked for."""

from __future__ import annotations

from tidelog.judge.excuses import Excuses
from tidelog.judge.history import Anomaly, FinalLog, HeadDeleted, History, Read


def beheaded(history: History, excuses: Excuses) -> list[Anomaly]:
    """Records leave the head of a log by retention or by DeleteRecords, never by themselves."""
    limits: dict[str, int | None] = {}
    found = []
    for operation in history:
        if isinstance(operation, HeadDeleted):
            limit = limits.get(operation.partition, 0)
            below = operation.below_offset
            limits[operation.partition] = (
                None if below is None or limit is None else max(limit, below)
            )
        elif isinstance(operation, Read | FinalLog):
            limit = limits.get(operation.partition, 0)
            if limit is not None and operation.log_start_offset > limit:
                found.append(
                    Anomaly(
                        check="beheaded",
                        at_us=operation.at_us,
                        partition=operation.partition,
                        evidence=f"the log starts at {operation.log_start_offset}, "
                        f"nobody deleted above {limit}",
                    )
                )
    return found
