"""One partition on one broker: its log, its role, and where the high watermark may go.

Notifies its watchers (parked fetches) and waiters (parked produce requests) of what moved; decides
nothing about requests. A leader has a `leadership`, a follower knows whom it follows, and a
partition without a leader waits.
"""

# Size: one partition in both its roles; in two files its fences would have two movers.

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicId, TopicPartition
from tidelog.core.model.trace import Trace
from tidelog.core.replication import events
from tidelog.core.replication.in_sync import Proposal
from tidelog.core.replication.leader import BrokerStandings, Leadership
from tidelog.core.replication.produce_purgatory import (
    FollowerWatcher,
    ProducePurgatory,
    Watcher,
    notify,
)
from tidelog.core.replication.progress import FollowerSession
from tidelog.core.storage.log import Log
from tidelog.core.wire.sentinels import NO_LEADER_EPOCH

if TYPE_CHECKING:
    from tidelog.core.replication.replica_fetcher import ReplicaFetcher

BEFORE_ANY_EPOCH = -1
"""Of a partition without an assignment: the first one that the metadata names is later.

Not None, because each Produce and each Fetch compares leader epochs.
"""


class Assignment(NamedTuple):
    """What the metadata says of a partition."""

    leader_id: int | None
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]


class Partition:
    """Invariant: log start <= high watermark <= log end; on a leader the middle one only grows."""

    __slots__ = (
        "cluster",
        "deletion_watchers",
        "fetcher",
        "follower_watchers",
        "is_deleted",
        "is_touched",
        "is_under_minimum",
        "isr",
        "isr_min",
        "lag_ms_max",
        "leader_epoch",
        "leader_id",
        "leadership",
        "log",
        "minimum",
        "node_id",
        "partition_epoch",
        "replicas",
        "announced_end_offset",
        "topic_id",
        "topic_partition",
        "trace",
        "purgatory",
        "waits_for_sync",
        "watchers",
    )

    def __init__(
        self,
        *,
        topic_partition: TopicPartition,
        topic_id: TopicId,
        log: Log,
        node_id: int,
        waits_for_sync: bool,
        isr_min: int,
        lag_ms_max: int,
        cluster: BrokerStandings,
        trace: Trace,
    ) -> None:
        self.topic_partition = topic_partition
        self.topic_id = topic_id
        self.log = log
        self.node_id = node_id
        self.waits_for_sync = waits_for_sync
        self.lag_ms_max = lag_ms_max
        self.cluster = cluster
        self.trace = trace
        self.leader_id: int | None = None
        self.leader_epoch = BEFORE_ANY_EPOCH
        self.partition_epoch = BEFORE_ANY_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.isr: tuple[int, ...] = ()
        """Committed, as far as this broker knows."""
        self.require(isr_min)
        self.leadership: Leadership | None = None
        self.fetcher: ReplicaFetcher | None = None
        """As a follower: what fetches from the leader."""
        self.purgatory = ProducePurgatory(high_watermark=log.high_watermark)
        self.watchers: dict[Watcher, None] = {}
        """Look again when the high watermark or the role has changed."""
        self.follower_watchers: dict[FollowerWatcher, None] = {}
        """The same for followers, who read up to the log end."""
        self.deletion_watchers: dict[Watcher, None] = {}
        """Look again when a follower has fetched: it may have deleted what they wait for."""
        self.announced_end_offset = log.log_end_offset
        """Of a leader's log when its followers were last notified."""
        self.is_touched = False
        self.is_deleted = False

    @property
    def is_leader(self) -> bool:
        return self.leadership is not None

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    @property
    def log_start_offset(self) -> int:
        return self.log.log_start_offset

    # Roles

    def lead(self, assigned: Assignment, now_ms: int) -> None:
        """Take the leadership that the metadata log gave us; nothing of the log is changed."""
        if assigned.partition_epoch < self.partition_epoch:
            return
        leadership = self.leadership
        if leadership is not None and assigned.leader_epoch == self.leader_epoch:
            if not leadership.on_metadata(
                replicas=assigned.replicas,
                isr=assigned.isr,
                partition_epoch=assigned.partition_epoch,
            ):
                return
            self._announce_isr(assigned)
        else:
            self._begin(assigned, now_ms)
        self._take(assigned)

    def _begin(self, assigned: Assignment, now_ms: int) -> None:
        log = self.log
        # Before any record: followers may ask about leader epochs that this log has never seen.
        log.begin_leader_epoch(assigned.leader_epoch)
        if self.leadership is None:
            self.purgatory = ProducePurgatory(high_watermark=log.high_watermark)
        self.fetcher = None
        self.announced_end_offset = log.log_end_offset
        self.leadership = Leadership(
            node_id=self.node_id,
            leader_epoch=assigned.leader_epoch,
            partition_epoch=assigned.partition_epoch,
            start_offset=log.log_end_offset,
            replicas=assigned.replicas,
            isr=assigned.isr,
            lag_ms_max=self.lag_ms_max,
            cluster=self.cluster,
            now_ms=now_ms,
        )
        self.trace.emit(
            events.BecameLeader(
                partition=str(self.topic_partition),
                broker_id=self.node_id,
                leader_epoch=assigned.leader_epoch,
                start_offset=log.log_end_offset,
                high_watermark=log.high_watermark,
                isr=assigned.isr,
            )
        )

    def follow(self, assigned: Assignment) -> bool:
        """Copy from the leader, or wait for one. True if the leader epoch is a new one."""
        if assigned.partition_epoch < self.partition_epoch:
            return False
        is_new = assigned.leader_epoch != self.leader_epoch
        was_leader = self.is_leader
        self.leadership = None
        self._take(assigned)
        if was_leader:
            self.purgatory.end(self, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        if is_new:
            self.trace.emit(
                events.BecameFollower(
                    partition=str(self.topic_partition),
                    broker_id=self.node_id,
                    leader_id=assigned.leader_id,
                    leader_epoch=assigned.leader_epoch,
                    log_end_offset=self.log.log_end_offset,
                    high_watermark=self.log.high_watermark,
                )
            )
        return is_new

    def delete(self, code: ErrorCode = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION) -> None:
        """Its topic is deleted, or it has moved to other brokers; the code tells clients which."""
        self.is_deleted = True
        self.retire(code)
        self.watchers.clear()
        self.follower_watchers.clear()
        self.deletion_watchers.clear()

    def start_fetching(self, fetcher: ReplicaFetcher) -> None:
        assert self.fetcher is None, "one leader at a time"
        self.fetcher = fetcher

    def stop_fetching(self) -> ReplicaFetcher | None:
        """Returns the fetcher that is not ours any more: it must be taken off its link."""
        fetcher, self.fetcher = self.fetcher, None
        return fetcher

    def retire(self, code: ErrorCode) -> None:
        """Neither lead nor follow any more: deleted, or on a disk that failed."""
        self.leadership = None
        self.leader_id = None
        self.fetcher = None
        self.purgatory.end(self, code)
        self.notify_watchers()

    def _take(self, assigned: Assignment) -> None:
        self.leader_id = assigned.leader_id
        self.leader_epoch = assigned.leader_epoch
        self.partition_epoch = assigned.partition_epoch
        self.replicas = assigned.replicas
        self.isr = assigned.isr
        self.require(self.isr_min)

    def require(self, isr_min: int) -> None:
        """The configured minimum; with fewer replicas than that, all of them are enough."""
        self.isr_min = isr_min
        self.minimum = min(isr_min, len(self.replicas))
        self.is_under_minimum = len(self.isr) < self.minimum

    # The in-sync set

    def on_follower_fetch(
        self,
        broker_id: int,
        *,
        fetch_offset: int,
        log_start_offset: int,
        broker_epoch: int | None,
        session: FollowerSession | None,
        now_ms: int,
    ) -> Proposal | None:
        """Count what a follower has. Whoever may join the set now is proposed for it."""
        leadership = self.leadership
        assert leadership is not None, "only leaders count"
        log = self.log
        leadership.followers[broker_id].on_fetch(
            fetch_offset=fetch_offset,
            log_start_offset=log_start_offset,
            broker_epoch=broker_epoch,
            leader_end_offset=log.log_end_offset,
            session=session,
            now_ms=now_ms,
        )
        if broker_id in self.isr:
            return None
        return leadership.propose_member(broker_id, high_watermark=log.high_watermark)

    def propose_growth(self, now_ms: int) -> Proposal | None:
        """Propose a follower that could not join when it fetched."""
        leadership, log = self.leadership, self.log
        if leadership is None or log.failed is not None:
            return None
        return leadership.propose_any(
            high_watermark=log.high_watermark,
            leader_end_offset=log.log_end_offset,
            now_ms=now_ms,
        )

    def propose_shrinking(self, now_ms: int) -> Proposal | None:
        """Propose to leave out those who have been behind for too long."""
        if self.leadership is None:
            return None
        return self.leadership.propose_without_slow(
            leader_end_offset=self.log.log_end_offset, now_ms=now_ms
        )

    def is_pending(self, proposal: Proposal) -> bool:
        """Whether nothing has happened since that makes it void."""
        return self.leadership is not None and self.leadership.in_sync.pending is proposal

    def withdraw_proposal(self) -> None:
        """The controller surely did not apply it; see `InSync.withdraw`."""
        assert self.leadership is not None, "only leaders propose"
        self.leadership.in_sync.withdraw()
        self.notify_watchers()  # the next fetch of who was refused asks for it again

    def on_isr_committed(
        self, isr: tuple[int, ...], *, leader_epoch: int, partition_epoch: int
    ) -> bool:
        """The controller's answer, which may be ahead of the metadata. False: old news."""
        leadership = self.leadership
        if leadership is None or leader_epoch != self.leader_epoch:
            return False
        if not leadership.in_sync.commit(isr, partition_epoch=partition_epoch):
            return False
        assigned = Assignment(self.node_id, leader_epoch, partition_epoch, self.replicas, isr)
        self._announce_isr(assigned)
        self._take(assigned)
        return True

    def _announce_isr(self, assigned: Assignment) -> None:
        if assigned.isr != self.isr:
            self.trace.emit(
                events.IsrCommitted(
                    partition=str(self.topic_partition),
                    broker_id=self.node_id,
                    leader_epoch=assigned.leader_epoch,
                    partition_epoch=assigned.partition_epoch,
                    isr=assigned.isr,
                )
            )
            for watcher in self.follower_watchers:
                watcher.on_isr_changed()

    # Leader epochs

    def refuse_leader_epoch(self, claimed: int | None) -> ErrorCode:
        """Whether a client's idea of the leader epoch is older or newer than ours."""
        if claimed is None or claimed == self.leader_epoch:
            return ErrorCode.NONE
        if claimed < self.leader_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        return ErrorCode.UNKNOWN_LEADER_EPOCH

    def leader_epoch_end(self, requested_leader_epoch: int) -> tuple[int, int] | None:
        """The largest leader epoch not above the asked one, and where it ends; None if unknown."""
        log = self.log
        if requested_leader_epoch < NO_LEADER_EPOCH and log.epochs.latest is not None:
            # Nonsense, but Kafka counts it as older than all it knows.
            return requested_leader_epoch, log.epochs.entries[0][1]
        end: tuple[int, int] | None = log.leader_epoch_end(requested_leader_epoch)
        return end

    # Fences

    def own_end_offset(self) -> int:
        """What this replica promises to hold: all that it wrote, or all that it synced."""
        if self.waits_for_sync:
            return self.log.synced_end_offset
        return self.log.log_end_offset

    def settle(self, now_ms: int) -> None:
        """Once per tick in which something about it changed; wakes whoever waits for that."""
        leadership = self.leadership
        if leadership is None:
            fetcher = self.fetcher
            if fetcher is not None and self.waits_for_sync:
                fetcher.on_synced()
            return
        end_offset = self.log.log_end_offset
        if end_offset != self.announced_end_offset:
            if leadership.followers:
                leadership.on_append(from_end_offset=self.announced_end_offset)
            self.announced_end_offset = end_offset
            if self.follower_watchers:
                notify(self.follower_watchers)
        if self.advance_high_watermark(now_ms) and self.watchers:
            notify(self.watchers)
        if self.deletion_watchers:
            notify(self.deletion_watchers)

    def advance_high_watermark(self, now_ms: int) -> bool:
        """As a leader, move it to where everyone who counts has come; True if it moved."""
        leadership, log = self.leadership, self.log
        if leadership is None:
            return False
        end_offset = log.synced_end_offset if self.waits_for_sync else log.log_end_offset
        if leadership.followers:
            candidate = leadership.high_watermark_candidate(
                own_end_offset=end_offset,
                leader_end_offset=log.log_end_offset,
                isr_min=self.minimum,
                now_ms=now_ms,
            )
            if candidate is None:
                return False
            end_offset = candidate
        if end_offset <= log.high_watermark:
            return False
        log.advance_high_watermark(end_offset)
        self.purgatory.on_high_watermark(end_offset)
        return True

    def follow_high_watermark(self, leader_high_watermark: int) -> bool:
        """As a follower, take over what the leader says, as far as we have it."""
        log = self.log
        candidate = min(leader_high_watermark, log.log_end_offset)
        if candidate <= log.high_watermark:
            return False
        log.advance_high_watermark(candidate)
        return True

    def notify_watchers(self) -> None:
        """Everyone looks again: the role, the log's start or its very existence has changed."""
        notify(self.watchers)
        notify(self.follower_watchers)
        notify(self.deletion_watchers)

    def check(self) -> None:
        log = self.log
        assert log.log_start_offset <= log.high_watermark, self.topic_partition
        assert log.high_watermark <= log.log_end_offset, self.topic_partition
        self.purgatory.check()
        if self.leadership is not None:
            assert self.leader_id == self.node_id, self.topic_partition
            assert self.isr == self.leadership.in_sync.committed, self.topic_partition
            self.leadership.check()
        else:
            assert not len(self.purgatory), self.topic_partition
