"""The observer of a simulated cluster: reads its nodes after every tick and informs the checker.

The only file of the simulator that knows how a node keeps what an invariant needs. It reads and
never changes anything. After a tick only what is new is reported; every so often everything is read
again from the beginning and compared, so that the cheap way cannot drift away from the truth.
"""

# Size: everything that is noted about a run's nodes and logs, in the order of their life.

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial

from tidelog.core.node.node import Node
from tidelog.core.replication.events import FollowerTruncated
from tidelog.core.replication.in_sync import Proposal
from tidelog.core.replication.partition import Partition
from tidelog.core.storage.events import LogStartedAnew, LogTruncated
from tidelog.core.storage.log import Log
from tidelog.judge.cluster.checker import ClusterChecker
from tidelog.judge.cluster.facts import (
    METADATA,
    Incarnation,
    ObservedBatch,
    ObservedQuorumNode,
    ObservedReplica,
)
from tidelog.worlds.simulator.cluster import SimCluster
from tidelog.worlds.simulator.high_watermark_watch import HighWatermarkWatch
from tidelog.worlds.simulator.log_watch import DurableWatch, LogWatch, remembered
from tidelog.worlds.simulator.observed_metadata import ObservedMetadata, minimum_of
from tidelog.worlds.simulator.process import Paused, Woken

TICKS_PER_FULL_CHECK = 1_000


@dataclass(slots=True)
class LogView:
    """What was reported of one log."""

    watch: LogWatch
    durable: DurableWatch
    start_offset: int = 0
    end_offset: int = 0
    claimed: tuple[int, int] = (0, 0)
    """What it believed to be on its disk when that was last compared."""
    cut_to: int | None = None
    """A cut since the last tick; whatever follows it is new."""


@dataclass(slots=True)
class NodeView:
    """What was reported of one node in this run."""

    incarnation: Incarnation
    logs: dict[str, LogView] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """The observed name of each log by the name that storage gives it."""
    seen: dict[Partition, tuple[object, ...]] = field(default_factory=dict)
    """What was reported of each partition; a cut log is not here until it is reported anew."""
    pending: dict[Partition, Proposal | None] = field(default_factory=dict)
    """The in-sync set that was proposed when a partition was last reported."""
    broker_epoch: int | None = None
    quorum: tuple[object, ...] | None = None
    applied_end_offset: int | None = None
    proposed: dict[str, tuple[object, tuple[tuple[int, int | None], ...]]] = field(
        default_factory=dict
    )


class Observation:
    """Attached to a cluster before its nodes start."""

    def __init__(self, cluster: SimCluster) -> None:
        self.cluster = cluster
        self.checker = ClusterChecker(now_us=lambda: cluster.world.now_us)
        self.metadata = ObservedMetadata(self.checker, cluster.texts(cluster.node_ids[0]))
        self.high_watermarks = HighWatermarkWatch(lambda: cluster.world.now_us)
        self.full_checks = 0
        self.damaged: dict[tuple[str, int], int] = {}
        """By partition and node: the first offset whose bytes its disk has spoilt."""
        self._views: dict[int, NodeView] = {}
        self._floors: dict[int, dict[str, int]] = {}
        self._durable: dict[int, int] = {}
        """Up to where the metadata log of each node is on its disk."""
        self._dropped_pages = dict.fromkeys(cluster.node_ids, 0)
        self._ticks = 0
        self._paused_us: dict[int, int] = {}
        trace = cluster.world.trace
        trace.watchers[LogTruncated] = self._on_truncated
        trace.watchers[LogStartedAnew] = self._on_started_anew
        trace.watchers[Paused] = self._on_paused
        trace.watchers[Woken] = self._on_woken
        trace.watchers[FollowerTruncated] = self._on_follower_truncated
        for node_id, process in cluster.processes.items():
            process.on_ticked = partial(self._on_ticked, node_id)
            process.on_ending = partial(self._on_ending, node_id)

    def check_all(self) -> None:
        """Read everything anew, compare it with what was reported, and check every invariant."""
        self.full_checks += 1
        for node_id, view in sorted(self._views.items()):
            if self.cluster.processes[node_id].is_up:
                self._look(node_id, view, self.cluster.node(node_id))
                for name, seen in view.logs.items():
                    self._compare(node_id, name, seen.watch.log)
        self.checker.check_all()

    def lose_unsynced(self, node_id: int, because: str) -> None:
        """The host of a process that is down loses its power."""
        self.checker.on_down(node_id, floors=self._floors.get(node_id, {}), because=because)

    def lose_everything(self, node_id: int) -> None:
        """The disk of a process that is down was replaced by an empty one."""
        names = [
            name for name, by_node in self.checker.model.log_copies.items() if node_id in by_node
        ]
        self.checker.on_down(node_id, floors=dict.fromkeys(names, 0), because="wiped")
        self._floors[node_id] = {}

    # What processes do.

    def _on_ticked(self, node_id: int) -> None:
        node = self.cluster.node(node_id)
        runs = self.cluster.processes[node_id].runs
        view = self._views.get(node_id)
        if view is None or view.incarnation.number != runs:
            view = self._views[node_id] = NodeView(Incarnation(node_id, runs))
            self.checker.on_up(view.incarnation)
            self._look_at_logs(node_id, view, node)
        self._look(node_id, view, node)
        self.checker.check_step()
        self._ticks += 1
        if self._ticks % TICKS_PER_FULL_CHECK == 0:
            self.check_all()

    def _on_ending(self, node_id: int, how: str) -> None:
        view = self._views.pop(node_id, None)
        floors = self._floors.setdefault(node_id, {})
        if view is not None:
            if how != "halted":
                # It may have committed something that others know of, in its last tick.
                self._look(node_id, view, self.cluster.node(node_id))
                self.checker.check_step()
            for name, seen in view.logs.items():
                floors[name] = safe_end_offset(seen.watch.log, floors.get(name, 0))
        dropped_pages = self.cluster.processes[node_id].store.dropped_pages
        has_lost = how == "power lost" or dropped_pages > self._dropped_pages[node_id]
        self._dropped_pages[node_id] = dropped_pages
        # A recovery may find the spoilt bytes, and cut the log there.
        spoilt = {
            name: min(offset, floors.get(name, offset))
            for (name, damaged_id), offset in self.damaged.items()
            if damaged_id == node_id and how != "stopped"
        }
        floors.update(spoilt)
        self.checker.on_down(node_id, floors=floors if has_lost else spoilt, because=how)

    def _on_paused(self, source: str, event: object) -> None:
        """What it did by now it did before the pause, also in a tick that has not ended."""
        node_id = self._node_of(source)
        if node_id is not None:
            self._paused_us[node_id] = self.cluster.world.now_us
            view = self._views.get(node_id)
            if view is not None:
                self._look(node_id, view, self.cluster.node(node_id))
                self.checker.check_step()

    def _on_woken(self, source: str, event: object) -> None:
        node_id = self._node_of(source)
        if node_id is None:
            return
        paused_us = self._paused_us.pop(node_id)
        session_ms = self.cluster.node(node_id).settings.integer("broker.session.timeout.ms")
        if self.cluster.world.now_us - paused_us > session_ms * 1_000:
            self.checker.on_resumed(node_id, paused_us=paused_us)

    # Looking at a node.

    def _look(self, node_id: int, view: NodeView, node: Node) -> None:
        broker_epoch = node.broker_lifecycle.broker_epoch
        if broker_epoch is not None and broker_epoch != view.broker_epoch:
            view.broker_epoch = broker_epoch
            self.checker.on_registered(node_id, broker_epoch)
        self._look_at_log(node_id, view, METADATA, node.metadata.log)
        self._look_at_quorum(view, node)
        self._look_at_metadata(node_id, view, node)
        for partition in node.partitions:
            self._look_at_partition(node_id, view, partition, node)
        for partition in [each for each in view.seen if each.is_deleted]:
            self._forget_deleted(node_id, view, partition)
        for name in [name for name, seen in view.logs.items() if seen.watch.log.failed is not None]:
            del view.logs[name]
            view.seen.clear()
            self.checker.on_replica_gone(name, node_id)
        for name, seen in view.logs.items():
            self._look_at_claims(node_id, name, seen)

    def _look_at_logs(self, node_id: int, view: NodeView, node: Node) -> None:
        """Before anything else about a new process: an election is judged by what its winner has.

        A node alone registers, recovers its logs and is elected within one tick.
        """
        for partition in node.partitions:
            if partition.log.failed is None:
                topic, index = partition.topic_partition.topic, partition.topic_partition.index
                name = self.metadata.name(topic, partition.topic_id, index)
                self._look_at_log(node_id, view, name, partition.log)

    def _look_at_partition(
        self, node_id: int, view: NodeView, partition: Partition, node: Node
    ) -> None:
        log = partition.log
        leadership = partition.leadership
        in_sync = None if leadership is None else leadership.in_sync
        maximal = frozenset[int]() if in_sync is None else in_sync.maximal
        pending = None if in_sync is None else in_sync.pending
        now = (
            log,
            log.log_end_offset,
            log.high_watermark,
            partition.own_end_offset(),
            partition.leader_epoch,
            log.log_start_offset,
            maximal,
            partition.isr,
            partition.minimum,
        )
        # A refused proposal may be made again at once, for another process of the same follower:
        # equal to the first one, but not the same.
        is_seen = view.seen.get(partition) == now and view.pending.get(partition) is pending
        if is_seen or log.failed is not None:
            return
        view.pending[partition] = pending
        topic, index = partition.topic_partition.topic, partition.topic_partition.index
        name = self.metadata.name(topic, partition.topic_id, index)
        has_cut = name in view.logs and view.logs[name].cut_to is not None
        view.names[str(partition.topic_partition)] = name
        view.seen[partition] = now
        self._look_at_log(node_id, view, name, log)
        if leadership is not None:
            self.high_watermarks.note(name, partition.leader_epoch, log.high_watermark)
        self.checker.on_replica(
            ObservedReplica(
                incarnation=view.incarnation,
                partition=name,
                is_leader=leadership is not None,
                leader_epoch=partition.leader_epoch,
                isr=frozenset(partition.isr),
                maximal_isr=maximal,
                minimum=minimum_of(node, partition),
                high_watermark=log.high_watermark,
                held_end_offset=partition.own_end_offset(),
                fetched_by=self._fetched_by(view, name, partition),
            )
        )
        if has_cut:
            self.checker.on_producers(name, node_id, remembered(log.producers))

    def _forget_deleted(self, node_id: int, view: NodeView, partition: Partition) -> None:
        """Its topic is gone, or it moved away. It may be back already, as another log."""
        del view.seen[partition]
        view.pending.pop(partition, None)
        name = view.names[str(partition.topic_partition)]
        seen = view.logs.get(name)
        if seen is not None and seen.watch.log is partition.log:
            del view.logs[name]
            self.checker.on_log_deleted(name, node_id)

    def _fetched_by(
        self, view: NodeView, name: str, partition: Partition
    ) -> tuple[tuple[int, int | None], ...]:
        """The members of the newest proposal, each with the process that fetched for it."""
        leadership = partition.leadership
        if leadership is None:
            view.proposed.pop(name, None)
        elif leadership.in_sync.pending is not None:
            pending = leadership.in_sync.pending
            known, _ = view.proposed.get(name, (None, ()))
            if known is not pending:
                view.proposed[name] = (pending, tuple(leadership.broker_epochs(pending.isr)))
        return view.proposed.get(name, (None, ()))[1]

    def _look_at_log(self, node_id: int, view: NodeView, name: str, log: Log) -> None:
        seen = view.logs.get(name)
        if seen is None or seen.watch.log is not log:
            watch = LogWatch(log)
            view.logs[name] = LogView(
                watch, DurableWatch(log), log.log_start_offset, log.log_end_offset
            )
            self._read_anew(node_id, name, log, watch.new_batches())
            return
        start_offset, end_offset = log.log_start_offset, log.log_end_offset
        cut_to = seen.cut_to
        if cut_to is None and seen.end_offset == end_offset and seen.start_offset == start_offset:
            return
        if cut_to is not None:
            seen.watch.rewind(cut_to)
            seen.durable.rewind()
        seen.cut_to, seen.start_offset, seen.end_offset = None, start_offset, end_offset
        if log.failed is None:
            self.checker.on_log(
                name,
                node_id,
                start_offset=start_offset,
                cut_to=cut_to,
                appended=seen.watch.new_batches(),
            )

    def _look_at_claims(self, node_id: int, name: str, seen: LogView) -> None:
        log = seen.watch.log
        claimed = (log.synced_end_offset, log.recovery_point)
        if claimed != seen.claimed:
            seen.claimed = claimed
            self._report_claims(node_id, name, log, seen.durable)

    def _report_claims(self, node_id: int, name: str, log: Log, durable: DurableWatch) -> None:
        """What the log believes to be durable, against the simulated disk."""
        synced, recovery_point = log.synced_end_offset, log.recovery_point
        if (name, node_id) not in self.damaged:
            self.checker.on_synced(
                name,
                node_id,
                synced_end_offset=synced,
                recovery_point=recovery_point,
                durable_end_offset=durable.reach(max(synced, recovery_point)),
            )

    def _read_anew(self, node_id: int, name: str, log: Log, found: list[ObservedBatch]) -> None:
        """A log that was opened: keep what is as it was reported before, and report the rest."""
        log_copy = self.checker.model.log_copy(name, node_id)
        common_end_offset = log.log_start_offset
        for batch in found:
            if log_copy.batches.get(batch.base_offset) != batch:
                break
            common_end_offset = batch.end_offset
        self.checker.on_log(
            name,
            node_id,
            start_offset=log.log_start_offset,
            cut_to=common_end_offset,
            appended=[batch for batch in found if batch.end_offset > common_end_offset],
        )

    def _look_at_quorum(self, view: NodeView, node: Node) -> None:
        quorum = node.quorum
        machine, log = quorum.machine, node.metadata.log
        now = (
            machine.quorum_epoch,
            machine.role,
            machine.voted_for,
            quorum.high_watermark,
            log.synced_end_offset,
            log.log_end_offset,
            node.metadata.applied_end_offset,
        )
        if now == view.quorum:
            return
        view.quorum = now
        facts = ObservedQuorumNode(
            incarnation=view.incarnation,
            voters=quorum.voters,
            quorum_epoch=quorum.quorum_epoch,
            is_leader=quorum.is_leader,
            voted_for=machine.voted_for,
            high_watermark=quorum.high_watermark or 0,
            held_end_offset=self._durable_end(view.incarnation.node_id, log),
            applied_end_offset=node.metadata.applied_end_offset,
        )
        self.checker.on_quorum(facts)

    def _durable_end(self, node_id: int, log: Log) -> int:
        """What was synced in an earlier run is still there, although the log has to ask again."""
        known = min(self._durable.get(node_id, 0), log.log_end_offset)
        self._durable[node_id] = max(known, log.synced_end_offset)
        return self._durable[node_id]

    def _look_at_metadata(self, node_id: int, view: NodeView, node: Node) -> None:
        """Once the node has something new; what it believes is compared with what is true."""
        committed_end_offset = self.checker.model.committed_log(METADATA).end_offset
        if (
            committed_end_offset > self.metadata.end_offset
            and self.checker.model.agreement(METADATA, node_id) >= committed_end_offset
        ):
            self.metadata.read_on(node.metadata.log, committed_end_offset)
        if node.metadata.applied_end_offset != view.applied_end_offset:
            view.applied_end_offset = node.metadata.applied_end_offset
            self.metadata.compare(view.incarnation, node)

    def _compare(self, node_id: int, name: str, log: Log) -> None:
        """What was reported in small pieces is what the log holds."""
        if log.failed is not None:
            return
        log_copy = self.checker.model.log_copy(name, node_id)
        found = {batch.base_offset: batch for batch in LogWatch(log).new_batches()}
        assert list(log_copy.batches.items()) == list(found.items()), (node_id, name)
        assert log_copy.end_offset == log.log_end_offset, (node_id, name)
        self._report_claims(node_id, name, log, DurableWatch(log))
        if name != METADATA:
            self.checker.on_producers(name, node_id, remembered(log.producers))

    # Cuts, as they happen: a log may be cut and grow again within one tick.

    def _on_truncated(self, source: str, event: object) -> None:
        assert isinstance(event, LogTruncated)
        self._note_cut(source, event.partition, event.to_end_offset)

    def _on_started_anew(self, source: str, event: object) -> None:
        assert isinstance(event, LogStartedAnew)
        self._note_cut(source, event.partition, 0)

    def _on_follower_truncated(self, source: str, event: object) -> None:
        assert isinstance(event, FollowerTruncated)
        view = self._views.get(event.broker_id)
        name = None if view is None else view.names.get(event.partition)
        if name is not None and not self.damaged:
            self.checker.on_follower_truncated(
                name,
                event.broker_id,
                leader_epoch=event.leader_epoch,
                end_offset=event.to_end_offset,
            )

    def _note_cut(self, source: str, storage_name: str, end_offset: int) -> None:
        node_id = self._node_of(source)
        view = self._views.get(node_id) if node_id is not None else None
        if view is None:
            return
        name = view.names.get(storage_name, storage_name)
        seen = view.logs.get(name)
        floors = self._floors.get(node_id, {}) if node_id is not None else {}
        floors[name] = min(floors.get(name, 0), end_offset)
        if storage_name == METADATA and node_id is not None:
            self._durable[node_id] = min(self._durable.get(node_id, 0), end_offset)
        if seen is not None:
            seen.cut_to = end_offset if seen.cut_to is None else min(seen.cut_to, end_offset)
            view.seen.clear()

    def _node_of(self, source: str) -> int | None:
        """The node that signs its events so, if it runs."""
        for node_id, process in self.cluster.processes.items():
            if process.name == source:
                return node_id if process.is_up else None
        return None


def safe_end_offset(log: Log, known: int) -> int:
    """Before which a power loss takes nothing; what was safe once stays so, whatever a later start
    believes of it.

    A log without a byte promises nothing, not even its start:

      1. Records before 63 are deleted. A power loss takes what was not synced, and the broker
         begins an empty log at 63: so says the checkpoint of log starts.
      2. The next power loss takes this checkpoint as well. Nobody is left who knows of 63.
    """
    if not any(segment.file.size_bytes for segment in log.files.segments):
        return 0
    return max(log.recovery_point, known)
