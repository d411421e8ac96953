"""Every check of a history of clients, and the judge that applies them all."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidelog.judge.anomalies import Anomaly
from tidelog.judge.dirty_read import dirty_read
from tidelog.judge.excuses import Excuse, Excuses
from tidelog.judge.history import History
from tidelog.judge.lost_records import head_missing, lost, read_then_lost
from tidelog.judge.metadata_answers import producer_id_reused, topic_forgotten, topic_resurrected
from tidelog.judge.reader_answers import corrupt, gap, non_monotonic
from tidelog.judge.reordered import reordered
from tidelog.judge.stale import stale
from tidelog.judge.wrong_records import duplicated, misplaced, refused_but_present, unexpected

CHECKS: tuple[Callable[[History, Excuses], list[Anomaly]], ...] = (
    lost,
    read_then_lost,
    duplicated,
    reordered,
    gap,
    stale,
    dirty_read,
    non_monotonic,
    misplaced,
    refused_but_present,
    unexpected,
    corrupt,
    head_missing,
    producer_id_reused,
    topic_forgotten,
    topic_resurrected,
)


def judge(history: History, excuses: Iterable[Excuse] = ()) -> list[Anomaly]:
    """All anomalies that no given excuse covers, the earliest first."""
    given = Excuses(excuses)
    found = [anomaly for check in CHECKS for anomaly in check(history, given)]
    return sorted(found, key=lambda anomaly: anomaly.at_us)
