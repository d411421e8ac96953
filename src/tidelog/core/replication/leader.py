"""One broker's leadership of one partition in one leader epoch: the rules of a leader.

The high watermark is the least end offset over the maximal in-sync set, and
(a) it stands still while the committed set is smaller than the minimum, for every kind of acks;
(b) it also waits for a caught-up replica that may join the set and has not yet. Otherwise such a
    replica would run after a high watermark that the leader alone moves, and never join.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from tidelog.core.replication.in_sync import InSync, Proposal
from tidelog.core.replication.progress import FollowerProgress


class BrokerStandings(Protocol):
    """What a leader must know of the brokers around it."""

    def may_join(self, broker_id: int, broker_epoch: int | None) -> bool:
        """Neither fenced nor leaving, and this epoch is the one of its latest registration."""

    def is_alive(self, broker_id: int) -> bool:
        """Registered and not fenced."""


class Leadership:
    """Invariants: see `check`. A new leader epoch makes a new one: nothing is carried over.

    1. A leads in epoch 1 and knows that C has 100 records.
    2. B leads in epoch 2, C cuts its log to 90. A hears nothing of that.
    3. A leads in epoch 3. What it knew of C is wrong.
    """

    __slots__ = (
        "cluster",
        "followers",
        "in_sync",
        "lag_ms_max",
        "node_id",
        "proposed_by",
        "start_offset",
    )

    def __init__(
        self,
        *,
        node_id: int,
        leader_epoch: int,
        partition_epoch: int,
        start_offset: int,
        replicas: tuple[int, ...],
        isr: tuple[int, ...],
        lag_ms_max: int,
        cluster: BrokerStandings,
        now_ms: int,
    ) -> None:
        self.node_id = node_id
        self.start_offset = start_offset
        """Where this leader epoch's records begin."""
        self.lag_ms_max = lag_ms_max
        self.cluster = cluster
        self.in_sync = InSync(
            committed=isr, leader_epoch=leader_epoch, partition_epoch=partition_epoch
        )
        self.proposed_by: list[tuple[int, int | None]] = []
        """The members of the pending proposal, each with the process on whose merits it is one."""
        self.followers = {
            broker_id: FollowerProgress(
                broker_id, caught_up_ms=now_ms if broker_id in isr else None
            )
            for broker_id in replicas
            if broker_id != node_id
        }

    def on_metadata(
        self, *, replicas: tuple[int, ...], isr: tuple[int, ...], partition_epoch: int
    ) -> bool:
        """The controller's view of the same leader epoch. False: we know that already, or better.

        1. An answer commits a set in partition epoch 5; the next member is proposed at once.
        2. The metadata tells of partition epoch 5. If that voided the proposal, its member would
           not be waited for any more, and the controller might still let it in.
        """
        if partition_epoch == self.in_sync.partition_epoch:
            return False
        if not self.in_sync.commit(isr, partition_epoch=partition_epoch):
            return False
        followers = self.followers
        self.followers = {
            broker_id: followers.get(broker_id) or FollowerProgress(broker_id, caught_up_ms=None)
            for broker_id in replicas
            if broker_id != self.node_id
        }
        return True

    def on_append(self, *, from_end_offset: int) -> None:
        for follower in self.followers.values():
            follower.on_leader_append(from_end_offset=from_end_offset)

    def high_watermark_candidate(
        self, *, own_end_offset: int, leader_end_offset: int, isr_min: int, now_ms: int
    ) -> int | None:
        """Where the high watermark may go: everything before it is on every replica that counts.

        None: too little is known, or rule (a) holds it.


        `own_end_offset` is this broker's own share: all that it wrote, or all that it synced.
        """
        if len(self.in_sync.committed) < isr_min:
            return None
        end_offset = own_end_offset
        maximal = self.in_sync.maximal
        for broker_id, follower in self.followers.items():
            theirs = follower.log_end_offset
            if theirs is not None and theirs >= end_offset:
                continue
            if broker_id in maximal or self._is_joining(
                follower, leader_end_offset=leader_end_offset, now_ms=now_ms
            ):
                if theirs is None:
                    return None
                end_offset = theirs
        return end_offset

    def _is_joining(
        self, follower: FollowerProgress, *, leader_end_offset: int, now_ms: int
    ) -> bool:
        return follower.is_caught_up(
            leader_end_offset=leader_end_offset, now_ms=now_ms, lag_ms_max=self.lag_ms_max
        ) and self.cluster.may_join(follower.broker_id, follower.broker_epoch)

    def propose_member(self, broker_id: int, *, high_watermark: int) -> Proposal | None:
        """Let a follower into the set once it has all that may be committed.

        That is more than the high watermark: before it, this leader epoch's start must be reached.
        Its predecessor may have committed records up to there that we do not know to be committed.
        """
        in_sync = self.in_sync
        if in_sync.pending is not None or broker_id in in_sync.committed:
            return None
        follower = self.followers[broker_id]
        end_offset = follower.log_end_offset
        if end_offset is None or end_offset < max(high_watermark, self.start_offset):
            return None
        if not self.cluster.may_join(broker_id, follower.broker_epoch):
            return None
        return self._propose((*in_sync.committed, broker_id))

    def propose_any(
        self, *, high_watermark: int, leader_end_offset: int, now_ms: int
    ) -> Proposal | None:
        """Let a follower in that was fenced when it fetched, or had to wait for another's turn.

        One that has everything has no reason to mention the partition again; it must still be
        fetching. Whoever lacks something will fetch that, and be proposed then.
        """
        for broker_id, follower in self.followers.items():
            if follower.log_end_offset == leader_end_offset and follower.is_fetching(
                now_ms=now_ms, lag_ms_max=self.lag_ms_max
            ):
                proposal = self.propose_member(broker_id, high_watermark=high_watermark)
                if proposal is not None:
                    return proposal
        return None

    def propose_without_slow(self, *, leader_end_offset: int, now_ms: int) -> Proposal | None:
        """Ask that everyone leaves the set who has not been caught up for too long."""
        in_sync = self.in_sync
        if in_sync.pending is not None:
            return None
        slow = set(self._slow(leader_end_offset, now_ms))
        if not slow:
            return None
        return self._propose(tuple(each for each in in_sync.committed if each not in slow))

    def _propose(self, isr: tuple[int, ...]) -> Proposal:
        """Who fetched is written down now: the proposal may be asked for again much later.

        1. Follower 3 has everything; we propose {1, 2, 3}. The controller cannot be reached.
        2. Broker 3 loses its disk, registers anew and fetches from offset 0.
        3. A controller is there, and we ask again. With the epoch of the process that fetched
           *last*, it would let an empty replica into the set.
        """
        self.proposed_by = self.broker_epochs(isr)
        return self.in_sync.propose(isr)

    def _slow(self, leader_end_offset: int, now_ms: int) -> Iterator[int]:
        for broker_id in self.in_sync.committed:
            if broker_id == self.node_id:
                continue
            follower = self.followers.get(broker_id)
            if follower is None or not follower.is_caught_up(
                leader_end_offset=leader_end_offset, now_ms=now_ms, lag_ms_max=self.lag_ms_max
            ):
                yield broker_id

    def low_watermark(self, own_log_start_offset: int) -> int | None:
        """Before it, everything is deleted on every living replica; None: one is not known."""
        low = own_log_start_offset
        for broker_id, follower in self.followers.items():
            if self.cluster.is_alive(broker_id):
                if follower.log_start_offset is None:
                    return None
                low = min(low, follower.log_start_offset)
        return low

    def broker_epochs(self, isr: tuple[int, ...]) -> list[tuple[int, int | None]]:
        """Each member with the epoch of the process that fetched; None: it has not fetched yet.

        The controller compares them with its registrations, so that a broker that lost its disk in
        between does not join on its former self's merits (KIP-903).
        """
        known = self.followers
        return [(each, known[each].broker_epoch if each in known else None) for each in isr]

    def check(self) -> None:
        self.in_sync.check()
        assert self.node_id not in self.followers
