"""The verdict: every check of this room over one history."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.judge.duplicate import duplicate
from tidelog.judge.history import Anomaly, History
from tidelog.judge.lone_broker.beheaded import beheaded
from tidelog.judge.lone_broker.changed import changed
from tidelog.judge.lone_broker.corrupt import corrupt
from tidelog.judge.lone_broker.gap import gap
from tidelog.judge.lone_broker.lost import lost
from tidelog.judge.misplaced import misplaced
from tidelog.judge.phantom import phantom
from tidelog.judge.producer_ids import producer_id_reused
from tidelog.judge.reordered import reordered
from tidelog.judge.topics import topic_forgotten, topic_resurrected

CHECKS: tuple[Callable[[History], list[Anomaly]], ...] = (
    changed,
    lost,
    misplaced,
    duplicate,
    phantom,
    gap,
    corrupt,
    beheaded,
    reordered,
    producer_id_reused,
    topic_forgotten,
    topic_resurrected,
)


def judge(history: History) -> list[Anomaly]:
    """All anomalies, the earliest first."""
    found = [anomaly for check in CHECKS for anomaly in check(history)]
    return sorted(found, key=lambda anomaly: anomaly.at_us)
