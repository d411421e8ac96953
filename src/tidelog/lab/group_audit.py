"""The audit of a group: what its members were given and committed, against log and promises.

Invariants (nobody owns a partition twice, no commit is forgotten, a fenced commit does not count,
what was committed is not given out again) must hold in every story. How often a record was
delivered is for the story to say: see `GroupVerdict.semantics`. The plain audit is part of it: what
members were given is in the log, in order, and was committed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.judge.anomalies import Anomaly
from tidelog.judge.groups.deliveries import delivered_twice, skipped
from tidelog.judge.groups.group_checks import judge_groups
from tidelog.judge.groups.group_history import GroupOperation, GroupSynced, RecordDelivered
from tidelog.lab.audit import CLEAN, audit, final_log
from tidelog.lab.members import LabMember

if TYPE_CHECKING:
    from tidelog.lab.lab import Lab


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupVerdict:
    """What became of one partition's records in one group."""

    twice: tuple[str, ...] = ()
    """Delivered more than once, by payload."""
    skipped: tuple[str, ...] = ()
    """Before the group's position, but delivered to none of its members."""
    broken: tuple[str, ...] = ()
    """Evidence of invariants that do not hold, as text."""

    @property
    def semantics(self) -> str:
        """The promise that was kept in this story."""
        if self.twice and self.skipped:
            return "none"
        if self.twice:
            return "at least once"
        return "at most once" if self.skipped else "exactly once"


def audit_group(lab: Lab, group: str, *, index: int = 0) -> GroupVerdict:
    """The verdict over one partition of the story's topic, as its leader now gives it."""
    partition = f"{lab.topic.name}-{index}"
    members = [each for each in lab.members_made if each.group == group]
    history: list[GroupOperation] = [
        *(operation for member in members for operation in _operations(lab, member)),
        *(each for each in lab.groups.fetched if each.group == group),
    ]
    history = sorted(
        (it for it in history if getattr(it, "partition", partition) == partition),
        key=lambda operation: operation.at_us,
    )
    history.append(final_log(lab, partition, index))
    plain = audit(lab, index=index)
    return GroupVerdict(
        twice=_payloads(delivered_twice(history)),
        skipped=_payloads(skipped(history)),
        broken=(
            *(f"{each.name}: {each.text}" for each in judge_groups(history)),
            *(() if plain == CLEAN else (str(plain),)),
        ),
    )


def _operations(lab: Lab, member: LabMember) -> list[GroupOperation]:
    now_us = lab.engine.now_us
    return [
        *(
            GroupSynced(
                at_us=each.at_us,
                invoked_us=each.at_us,
                group=member.group,
                member=each.member_id,
                instance=None,
                generation=each.generation,
                partitions=tuple(map(str, each.partitions)),
            )
            for each in member.handle.assignments
        ),
        *(
            RecordDelivered(
                at_us=got.at_us,
                group=member.group,
                member=assigned.member_id,
                partition=f"{got.topic}-{got.index}",
                offset=got.offset,
                payload=(got.value or b"").decode(),
            )
            for got, assigned in zip(member.got, member.assigned_when_got, strict=True)
        ),
        *(
            operation
            for commit in member.commits
            for operation in commit.as_operations(member.group, now_us)
        ),
    ]


def _payloads(found: list[Anomaly]) -> tuple[str, ...]:
    """Each once, in order."""
    return tuple(dict.fromkeys(str(each.evidence["payload"]) for each in found))
