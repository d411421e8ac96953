"""Commits of those who may not commit any more: refused at once, and never seen."""

from __future__ import annotations

from tidelog.judge.anomalies import FENCED_COMMIT, REFUSED_COMMIT, Anomaly
from tidelog.judge.groups.group_history import (
    NO_GENERATION,
    Deletions,
    GroupHistory,
    GroupJoined,
    GroupSynced,
    MemberHeartbeat,
    OffsetCommitted,
    OffsetFetched,
)
from tidelog.judge.groups.member_partitions import FIRST_EPOCH, MemberPartitions
from tidelog.judge.history import CallOutcome


def fenced_commit(history: GroupHistory) -> list[Anomaly]:
    """Commits answered ok that were sent after a later generation had its assignment.

    Only an assignment counts: it is in the log before anybody gets it. A generation that members
    have only joined is forgotten with its coordinator, and the one before it goes on.
    """
    deletions = Deletions(history)
    synced = [it for it in history if isinstance(it, GroupSynced)]
    joins = [it for it in history if isinstance(it, GroupJoined)]
    found = []
    for commit in history:
        if not isinstance(commit, OffsetCommitted) or commit.outcome is not CallOutcome.OK:
            continue
        if commit.generation == NO_GENERATION:
            continue
        for later in synced:
            if later.group != commit.group or later.at_us >= commit.invoked_us:
                continue
            if later.generation <= commit.generation and not _fences(later, commit, synced, joins):
                continue
            if deletions.between(commit.group, later.invoked_us, commit.at_us):
                continue
            found.append(
                FENCED_COMMIT.found(
                    at_us=commit.at_us,
                    partition=commit.partition,
                    group=commit.group,
                    member=commit.member,
                    generation=commit.generation,
                    later_member=later.member,
                    later_generation=later.generation,
                )
            )
            break
    return found


def _fences(
    later: GroupSynced,
    commit: OffsetCommitted,
    synced: list[GroupSynced],
    joins: list[GroupJoined],
) -> bool:
    """Whether a later process of the same static member has taken over in this generation."""
    if commit.instance is None or later.instance != commit.instance:
        return False
    if later.member == commit.member or later.generation != commit.generation:
        return False
    began_us = [
        it.at_us
        for it in synced
        if it.group == commit.group
        and it.member == commit.member
        and it.generation == commit.generation
    ]
    return bool(began_us) and any(
        join.group == commit.group
        and join.member == later.member
        and began_us[0] < join.invoked_us
        and join.at_us <= later.at_us
        for join in joins
    )


def stale_commit(history: GroupHistory) -> list[Anomaly]:
    """Commits of KIP-848 members answered ok, though the partition was not theirs in that epoch.

    Either the member itself had released it and come to a later epoch, or it was removed and
    somebody else was given the partition. In its present epoch a member may commit anything.
    """
    deletions = Deletions(history)
    partitions = MemberPartitions(history)
    found = []
    for commit in history:
        if not isinstance(commit, OffsetCommitted) or commit.outcome is not CallOutcome.OK:
            continue
        if commit.generation == NO_GENERATION or commit.group not in partitions.beats:
            continue
        later = _released(commit, partitions) or _given_to_another(commit, partitions)
        if later is None or deletions.between(commit.group, later.invoked_us, commit.at_us):
            continue
        more = {} if later.member == commit.member else {"later_member": later.member}
        found.append(
            FENCED_COMMIT.found(
                at_us=commit.at_us,
                partition=commit.partition,
                group=commit.group,
                member=commit.member,
                epoch=commit.generation,
                later_epoch=later.member_epoch,
                **more,
            )
        )
    return found


def _released(commit: OffsetCommitted, partitions: MemberPartitions) -> MemberHeartbeat | None:
    """The answer in a later epoch to a heartbeat with which the member released the partition."""
    released_us = [
        hold.until_us
        for hold in partitions.holds.get((commit.group, commit.partition), ())
        if hold.member == commit.member and (hold.grant.member_epoch or 0) <= commit.generation
    ]
    for beat in partitions.of(commit.group, commit.member):
        if (
            beat.invoked_us in released_us
            and beat.sent_epoch >= FIRST_EPOCH
            and beat.member_epoch is not None
            and beat.member_epoch > commit.generation
            and beat.at_us < commit.invoked_us
        ):
            return beat
    return None


def _given_to_another(
    commit: OffsetCommitted, partitions: MemberPartitions
) -> MemberHeartbeat | None:
    holds = partitions.holds.get((commit.group, commit.partition), [])
    mine = [it for it in holds if it.member == commit.member and it.covers(commit.invoked_us)]
    for hold in holds:
        grant = hold.grant
        if (
            mine
            and hold.member != commit.member
            and mine[-1].grant.at_us < grant.invoked_us
            and grant.at_us < commit.invoked_us
            and not grant.from_deposed
        ):
            return grant
    return None


def refused_commit(history: GroupHistory) -> list[Anomaly]:
    """Fetches that show a commit whose caller was told that it does not count."""
    refused = {
        (it.group, it.partition, it.token): it
        for it in history
        if isinstance(it, OffsetCommitted) and it.outcome is CallOutcome.REFUSED
    }
    found = []
    for fetch in history:
        if isinstance(fetch, OffsetFetched) and fetch.token is not None:
            commit = refused.get((fetch.group, fetch.partition, fetch.token))
            if commit is not None:
                found.append(
                    REFUSED_COMMIT.found(
                        at_us=fetch.at_us,
                        partition=fetch.partition,
                        group=fetch.group,
                        token=commit.token,
                        member=commit.member,
                        error=commit.error,
                    )
                )
    return found
