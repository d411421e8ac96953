"""Every check of a history of consumer groups, and the judge that applies them all."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.judge.anomalies import UNANSWERED, Anomaly
from tidelog.judge.groups.committed_offsets import commit_forgotten, offset_invented
from tidelog.judge.groups.deliveries import delivered_after_commit
from tidelog.judge.groups.fenced_commits import fenced_commit, refused_commit, stale_commit
from tidelog.judge.groups.generations import generation_denied
from tidelog.judge.groups.group_history import GroupHistory, RequestUnanswered
from tidelog.judge.groups.member_epochs import epoch_denied
from tidelog.judge.groups.ownership import held_by_two, owned_twice, unowned


def unanswered(history: GroupHistory) -> list[Anomaly]:
    """Requests that hang over sound connections."""
    return [
        UNANSWERED.found(
            at_us=operation.at_us,
            partition="-",
            client=operation.client,
            request=operation.request,
            broker=operation.broker,
        )
        for operation in history
        if isinstance(operation, RequestUnanswered)
    ]


GROUP_CHECKS: tuple[Callable[[GroupHistory], list[Anomaly]], ...] = (
    owned_twice,
    held_by_two,
    unowned,
    commit_forgotten,
    offset_invented,
    fenced_commit,
    stale_commit,
    refused_commit,
    generation_denied,
    delivered_after_commit,
    epoch_denied,
    unanswered,
)


def judge_groups(history: GroupHistory) -> list[Anomaly]:
    """All anomalies, the earliest first."""
    found = [anomaly for check in GROUP_CHECKS for anomaly in check(history)]
    return sorted(found, key=lambda anomaly: anomaly.at_us)
