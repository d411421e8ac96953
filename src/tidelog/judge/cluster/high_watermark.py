"""The high watermark: never ahead of what its in-sync set holds, never moved below the minimum."""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.judge.anomalies import (
    BEHIND_MAXIMAL_ISR,
    HIGH_WATERMARK_FORWARD,
    MINIMUM_IN_SYNC,
)
from tidelog.judge.cluster.cluster_model import ClusterModel, Violation, violation
from tidelog.judge.cluster.facts import ObservedPartition, ObservedReplica


def behind_maximal_isr(model: ClusterModel, partition: str) -> Iterator[Violation]:
    """Every running member of the maximal in-sync set vouches for all below a leader's mark.

    A member that was taken off the list in the meantime (it restarted) proves nothing: the leader
    will hear of it. Nor does one that an election put there that was not clean, for a mark
    within the log that it began to lead with and has not synced yet (see `UnprovenLeaders`).
    """
    known = model.partitions.get(partition)
    if known is None:
        return
    for node_id in sorted(model.log_copies.get(partition, ())):
        leader = model.replicas.get((partition, node_id))
        if leader is None or not leader.is_leader or not model.is_current(leader):
            continue
        for member in sorted(leader.maximal_isr):
            replica = model.replicas.get((partition, member))
            if replica is None or not model.is_running(member) or member not in known.isr:
                continue
            if leader.high_watermark <= model.unproven.get((partition, member), -1):
                continue
            if replica.held_end_offset < leader.high_watermark:
                yield violation(
                    BEHIND_MAXIMAL_ISR,
                    partition,
                    leader=node_id,
                    high_watermark=leader.high_watermark,
                    member=member,
                    held_end_offset=replica.held_end_offset,
                    maximal_isr=sorted(leader.maximal_isr),
                )


def high_watermark_moved(
    before: ObservedReplica | None, after: ObservedReplica
) -> Iterator[Violation]:
    """What one step did to one leader's mark."""
    if (
        before is None
        or not after.is_leader
        or not before.is_leader
        or before.incarnation != after.incarnation
        or before.leader_epoch != after.leader_epoch
    ):
        return
    if after.high_watermark < before.high_watermark:
        yield violation(
            HIGH_WATERMARK_FORWARD,
            after.partition,
            leader=after.incarnation,
            high_watermark_before=before.high_watermark,
            high_watermark=after.high_watermark,
        )
    in_sync = max(len(before.isr), len(after.isr))
    minimum = min(before.minimum, after.minimum)
    if after.high_watermark > before.high_watermark and in_sync < minimum:
        yield violation(
            MINIMUM_IN_SYNC,
            after.partition,
            leader=after.incarnation,
            high_watermark=after.high_watermark,
            isr=sorted(after.isr),
            minimum=minimum,
        )


class UnprovenLeaders:
    """Keeps `model.unproven`: leaders by an election that was not clean, until they have synced.

    Such an election puts a replica in sync that vouched for nothing.

      1. 1 and 2 have committed up to offset 81. Both lose their power.
      2. 1 comes back with 93 records and knows of the sync of 80. It is the last known leader,
         leads, and syncs the rest. 2 fetches all of it, joins the in-sync set and remembers the
         mark 81.
      3. 2 is the preferred leader and is elected, cleanly. Its mark is ahead of what 1 vouches for.

    Nothing is wrong with that: the mark was right when it was set. Until 1 vouches for all that it
    began to lead with, a mark that is not beyond this proves nothing against it.
    """

    def __init__(self, model: ClusterModel) -> None:
        self._model = model
        self._elected: dict[tuple[str, int], int] = {}
        """The leader epoch of those that have not heard of their election yet."""

    def on_unclean(self, facts: ObservedPartition) -> None:
        """An election that was not clean."""
        assert facts.leader is not None
        self._elected[(facts.partition, facts.leader)] = facts.leader_epoch

    def on_replica(self, facts: ObservedReplica) -> None:
        unproven = self._model.unproven
        key = (facts.partition, facts.incarnation.node_id)
        end_offset = self._model.log_copy(*key).end_offset
        elected_in = self._elected.get(key)
        if elected_in is not None and facts.is_leader and facts.leader_epoch >= elected_in:
            del self._elected[key]
            unproven[key] = end_offset
        began_with = unproven.get(key)
        if began_with is not None and facts.held_end_offset >= min(began_with, end_offset):
            del unproven[key]

    def on_partition(self, facts: ObservedPartition) -> None:
        """Whoever leaves the set proves itself before it joins again."""
        for known in (self._elected, self._model.unproven):
            for key in [key for key in known if key[0] == facts.partition]:
                if key[1] not in facts.isr:
                    del known[key]

    def on_down(self, node_id: int) -> None:
        """It comes back with all of its log synced, or as a stranger to the set."""
        for known in (self._elected, self._model.unproven):
            for key in [key for key in known if key[1] == node_id]:
                del known[key]
