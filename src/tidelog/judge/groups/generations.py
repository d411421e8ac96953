"""Generations: what a member was assigned stays true, whoever coordinates the group next."""

from __future__ import annotations

from tidelog.judge.anomalies import GENERATION_DENIED, Anomaly
from tidelog.judge.groups.group_history import (
    Deletions,
    GroupHistory,
    GroupJoined,
    GroupSynced,
)


def generation_denied(history: GroupHistory) -> list[Anomaly]:
    """Generations that went back, and assignments of one generation that changed.

    An assignment is answered when it is in the log for good. So whoever asks afterwards is not
    let into an earlier generation, and nobody is given something else in the same one.
    """
    deletions = Deletions(history)
    return [*_went_back(history, deletions), *_changed(history, deletions)]


def _went_back(history: GroupHistory, deletions: Deletions) -> list[Anomaly]:
    given: dict[str, list[GroupSynced]] = {}
    found = []
    for operation in history:
        if not isinstance(operation, GroupJoined | GroupSynced):
            continue
        if not operation.from_deposed:
            for before in given.get(operation.group, ()):
                if (
                    before.at_us < operation.invoked_us
                    and before.generation > operation.generation
                    and not deletions.between(operation.group, before.invoked_us, operation.at_us)
                ):
                    found.append(
                        GENERATION_DENIED.found(
                            at_us=operation.at_us,
                            partition="-",
                            group=operation.group,
                            member=operation.member,
                            generation=operation.generation,
                            member_before=before.member,
                            generation_before=before.generation,
                        )
                    )
                    break
        if isinstance(operation, GroupSynced):
            given.setdefault(operation.group, []).append(operation)
    return found


def _changed(history: GroupHistory, deletions: Deletions) -> list[Anomaly]:
    given: dict[tuple[str, str, int], GroupSynced] = {}
    found = []
    for operation in history:
        if isinstance(operation, GroupSynced):
            key = operation.group, operation.member, operation.generation
            before = given.setdefault(key, operation)
            if before.partitions != operation.partitions and not deletions.between(
                operation.group, before.invoked_us, operation.at_us
            ):
                found.append(
                    GENERATION_DENIED.found(
                        at_us=operation.at_us,
                        partition="-",
                        group=operation.group,
                        member=operation.member,
                        generation=operation.generation,
                        assigned_before=before.partitions,
                        assigned=operation.partitions,
                    )
                )
    return found
