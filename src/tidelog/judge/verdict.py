"""The verdict: every check of this room over one history of a replicated cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidelog.judge.beheaded import beheaded
from tidelog.judge.corrupt import corrupt
from tidelog.judge.duplicate import duplicate
from tidelog.judge.excuses import Excuse, Excuses
from tidelog.judge.gap import gap
from tidelog.judge.ghost import ghost
from tidelog.judge.history import Anomaly, History
from tidelog.judge.lost import lost
from tidelog.judge.misplaced import misplaced
from tidelog.judge.non_monotonic import non_monotonic
from tidelog.judge.phantom import phantom
from tidelog.judge.producer_ids import producer_id_reused
from tidelog.judge.reordered import reordered
from tidelog.judge.stale import stale
from tidelog.judge.topics import topic_forgotten, topic_resurrected

CHECKS: tuple[Callable[[History, Excuses], list[Anomaly]], ...] = (
    lost,
    ghost,
    duplicate,
    reordered,
    gap,
    stale,
    non_monotonic,
    misplaced,
    phantom,
    corrupt,
    beheaded,
    producer_id_reused,
    topic_forgotten,
    topic_resurrected,
)


def judge(history: History, excuses: Iterable[Excuse] = ()) -> list[Anomaly]:
    """All anomalies that no given excuse covers, the earliest first."""
    given = Excuses(excuses)
    found = [anomaly for check in CHECKS for anomaly in check(history, given)]
    return sorted(found, key=lambda anomaly: anomaly.at_us)
