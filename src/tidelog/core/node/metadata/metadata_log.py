"""The metadata of one node: decisions are written, agreed on by the quorum, and only then true.

There are two images. `Node.image` has committed records only, on every node: clients see nothing
else. `decided_image` is the active controller's: it has every record that was appended, too, and
decisions are made on it, so that two requests in a row cannot both create one topic. A proposal is
one batch, so a crash leaves all of it or nothing. Answers wait until what they rest on is
committed. When this node ceases to lead, everything that is not committed is dropped: the next
leader may have it or not.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from tidelog.core.controller.bootstrap import decide_bootstrap
from tidelog.core.controller.decision import RECORDS_PER_DECISION_MAX
from tidelog.core.metadata.image import ClusterImage, partition_changed
from tidelog.core.metadata.records import MetadataRecord
from tidelog.core.model.ids import METADATA_TOPIC_ID, TopicPartition
from tidelog.core.model.limits import INT32_MAX
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.node.metadata.image_delta import changes_between
from tidelog.core.node.metadata.metadata_port import MetadataPort
from tidelog.core.node.metadata.metadata_quorum import MetadataQuorum
from tidelog.core.node.metadata.metadata_records import (
    MetadataBatch,
    MetadataUnreadable,
    batch_of,
    read_batches,
)
from tidelog.core.node.metadata.node_identity import NodeIdentity, claim_directories
from tidelog.core.node.metadata.snapshots import Snapshots
from tidelog.core.quorum.values import LogPosition, RoleChanged
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.log import Log
from tidelog.core.wire.control_records import LeaderChange, VoterRecord, leader_change
from tidelog.core.wire.records import build

__all__ = ["Activation", "MetadataLoaded", "MetadataLog", "MetadataUnreadable"]

METADATA_PARTITION = TopicPartition(METADATA_TOPIC, 0)
METADATA_LOG_CONFIG = LogConfig(
    retention_ms=None,
    retention_bytes=None,
    delete=False,
    message_bytes_max=INT32_MAX,
    message_timestamp_after_max_ms=2**63 - 1,
    fsync="always",
)
"""Nothing is ever deleted by age or size, and a proposal may be as large as a request."""

Then = Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataLoaded:
    """What this node knew to be committed before it stopped is in its image again."""

    records: int
    end_offset: int
    topics: int


class Activation(Protocol):
    """Whoever works only while this node is the active controller."""

    def on_activated(self, now_ms: int) -> None:
        """`decided_image` is complete: decisions may be made."""

    def on_resigned(self, now_ms: int) -> None: ...


class _Proposal(NamedTuple):
    """Waits for the log to be committed up to `end_offset`."""

    end_offset: int
    then: Then | None
    otherwise: Then | None


class MetadataLog:
    """Invariants: committed <= log end; proposals are in the order of the log."""

    def __init__(self, port: MetadataPort) -> None:
        self._port = port
        self._log: Log | None = None
        self.identity = NodeIdentity("", ())
        self.decided_image = port.image
        self.is_leading = False
        self.is_active = False
        """This node leads the quorum, and its epoch has begun for everyone: it decides."""
        self.committed_end_offset = 0
        self.activations: list[Activation] = []
        self.snapshots = Snapshots(port)
        self.quorum = MetadataQuorum(port, self)
        self._activation_end_offset: int | None = None
        """While leading: committed up to here, the image has all that earlier leaders decided."""
        self._uncommitted: deque[MetadataBatch] = deque()
        """As the leader: what follows the committed records, so that nobody decodes it again."""
        self._proposals: deque[_Proposal] = deque()
        self._waiting: list[tuple[int, int, Then]] = []
        self._waiting_count = 0
        self._target_end_offset = 0
        self._newest_ms = 0
        self._is_committing = False
        self._is_silent = True

    @property
    def cluster_id(self) -> str:
        return self.identity.cluster_id

    @property
    def log(self) -> Log:
        assert self._log is not None, "not started"
        return self._log

    @property
    def applied_end_offset(self) -> int:
        """The image has every record before it."""
        return self.committed_end_offset

    @property
    def requests_sent(self) -> int:
        """As a follower of the quorum: for metadata."""
        return self.quorum.fetch_client.requests_sent

    def leader_address(self) -> tuple[str, int] | None:
        return self.quorum.leader_address()

    @property
    def controller_epoch(self) -> int:
        return self.quorum.quorum_epoch

    def claim_directories(self) -> None:
        """Before anything in them is touched: they must be ours."""
        port = self._port
        self.identity = claim_directories(
            port.disk,
            port.settings.log_dirs,
            node_id=port.settings.node_id,
            cluster_id=port.settings.cluster_id,
            is_alone=port.settings.is_sole_voter,
            random=port.random,
        )

    # Beginning

    def start(self, now_ms: int) -> None:
        """Load what is known to be committed, then take part in the quorum.

        A voter alone leads when this returns. What it writes from then on counts at once, until
        `finish_start` makes all of it durable with one sync, before anybody can hear of it.
        """
        port = self._port
        self._log = port.log_directory().open_log(
            METADATA_PARTITION,
            topic_id=METADATA_TOPIC_ID,
            config=METADATA_LOG_CONFIG,
            wall_ms=port.wall_ms(now_ms),
        )
        image, start_offset = self.snapshots.load(self._log, port.wall_ms(now_ms))
        self._restore_image(image, start_offset)
        replayed = 0
        for batch in read_batches(self._log, start_offset, self._log.high_watermark):
            self._apply(batch, now_ms)
            replayed += len(batch.records)
        port.trace.emit(
            MetadataLoaded(
                records=replayed,
                end_offset=self.committed_end_offset,
                topics=len(port.image.topics),
            )
        )
        self.quorum.start(self._log, now_ms)

    def finish_start(self, now_ms: int) -> None:
        """Everything that the start has written is durable from here on."""
        self._is_silent = False
        self.quorum.finish_start(now_ms)

    # Deciding

    def propose(
        self,
        records: Sequence[MetadataRecord],
        then: Then | None,
        *,
        now_ms: int,
        otherwise: Then | None = None,
    ) -> None:
        """Write all records or none; call `then` when they are committed.

        Without records it waits for everything that was decided before: also an answer that
        changes nothing may rest on a decision that is not durable yet. If this node ceases to
        lead before, or does not lead, `otherwise` is called instead.
        """
        assert len(records) <= RECORDS_PER_DECISION_MAX, "one decision, one batch"
        if not self.is_active:
            if otherwise is not None:
                otherwise()
            return
        if records:
            batch = batch_of(records, self._port.wall_ms(now_ms))
            if not self._append([(batch, records)], now_ms):
                return
        self._proposals.append(_Proposal(self.log.log_end_offset, then, otherwise))
        self.quorum.on_appended(now_ms)
        self.commit(self.committed_end_offset, now_ms)

    def when_applied(self, end_offset: int, then: Then) -> None:
        """Call `then` once this node's image has every record before `end_offset`."""
        if end_offset <= self.committed_end_offset and not self._is_committing:
            then()
            return
        self._waiting_count += 1
        heapq.heappush(self._waiting, (end_offset, self._waiting_count, then))

    def _append(
        self, batches: Sequence[tuple[bytearray, Sequence[MetadataRecord]]], now_ms: int
    ) -> bool:
        """False: the disk refused. Then nothing can be decided any more, and the node ends."""
        base_offset = self.log.log_end_offset
        if not self.quorum.append(bytearray().join(b for b, _ in batches), now_ms):
            return False
        wall_ms = self._port.wall_ms(now_ms)
        for batch, records in batches:
            end_offset = base_offset + (len(records) or 1)
            self._uncommitted.append(
                MetadataBatch(base_offset, end_offset, len(batch), wall_ms, records)
            )
            base_offset = end_offset
            for record in records:
                self.decided_image.apply(record)
        assert base_offset == self.log.log_end_offset
        return True

    # Leading

    def begin_leading(self, change: RoleChanged, granted_by: Sequence[int], now_ms: int) -> None:
        """One write: the leader change, and what a new cluster must agree on first.

        The decided image has what earlier leaders left behind, committed or not: as long as this
        node leads, all of it will be.
        """
        port, log = self._port, self.log
        self.is_leading = True
        self.decided_image = port.image.copy()
        self._uncommitted.clear()
        for batch in read_batches(log, self.committed_end_offset, log.log_end_offset):
            self._uncommitted.append(batch)
            for record in batch.records:
                self.decided_image.apply(record)
        wall_ms = port.wall_ms(now_ms)
        written = LeaderChange(
            change.node_id,
            voters=tuple(VoterRecord(voter) for voter in self.quorum.voters),
            granting_voters=tuple(VoterRecord(voter) for voter in granted_by),
        )
        first = build([leader_change(written, timestamp_ms=wall_ms)], control=True)
        batches: list[tuple[bytearray, Sequence[MetadataRecord]]] = [(first, ())]
        records = decide_bootstrap(
            self.decided_image, min_insync_replicas=port.settings.integer("min.insync.replicas")
        )
        if records:
            batches.append((batch_of(records, wall_ms), records))
        if not self._append(batches, now_ms):
            if self._is_silent:
                raise MetadataUnreadable(f"the metadata log cannot be written: {log.failed}")
            return
        self._activation_end_offset = log.log_end_offset
        self.quorum.on_appended(now_ms)

    def stop_leading(self, now_ms: int) -> None:
        """What was not committed is forgotten here; whoever waits for it must ask again."""
        self._activation_end_offset = None
        self._uncommitted.clear()
        self.decided_image = self._port.image
        dropped, self._proposals = self._proposals, deque()
        was_active, self.is_active = self.is_active, False
        self.is_leading = False
        for proposal in dropped:
            if proposal.otherwise is not None:
                proposal.otherwise()
        if was_active:
            for activation in self.activations:
                activation.on_resigned(now_ms)

    # Committing

    def commit(self, end_offset: int, now_ms: int) -> None:
        """The one place where decisions take effect: the quorum has agreed up to here.

        Whoever hears of it may propose more; that is taken up by the loop that is running.
        """
        self._target_end_offset = max(self._target_end_offset, end_offset)
        if self._is_committing:
            return
        self._is_committing = True
        try:
            while self._commit_next(now_ms) or self._notify_next(now_ms):
                pass
        finally:
            self._is_committing = False
        if not self._is_silent:
            self.snapshots.write_if_due(
                self.committed_end_offset, timestamp_ms=self._newest_ms, now_ms=now_ms
            )

    def _commit_next(self, now_ms: int) -> bool:
        """One batch; False if the image has all that is committed."""
        start_offset, end_offset = self.committed_end_offset, self._target_end_offset
        if start_offset >= end_offset:
            return False
        if self._uncommitted:
            batch = self._uncommitted.popleft()
            assert batch.base_offset == start_offset, (batch.base_offset, start_offset)
        else:
            batch = next(read_batches(self.log, start_offset, end_offset))
        self._apply(batch, now_ms)
        return True

    def _apply(self, batch: MetadataBatch, now_ms: int) -> None:
        port = self._port
        for record in batch.records:
            change = port.image.apply(record)
            if change is not None and not self._is_silent:
                port.on_change(change, now_ms)
        self.committed_end_offset = batch.end_offset
        self._newest_ms = batch.timestamp_ms
        self.snapshots.on_applied(batch.size_bytes)

    def _notify_next(self, now_ms: int) -> bool:
        """One of those who wait for what the image has now; False if none is left."""
        committed = self.committed_end_offset
        activation = self._activation_end_offset
        if activation is not None and not self.is_active and activation <= committed:
            self.is_active = True
            for each in self.activations:
                each.on_activated(now_ms)
            return True
        if self._proposals and self._proposals[0].end_offset <= committed:
            then = self._proposals.popleft().then
            if then is not None:
                then()
            return True
        if self._waiting and self._waiting[0][0] <= committed:
            heapq.heappop(self._waiting)[2]()
            return True
        return False

    def take_snapshot(self, position: LogPosition, content: bytearray, now_ms: int) -> None:
        """The leader's log no longer reaches back to where ours ends: begin with its snapshot.

        Raises MetadataUnreadable if it is not whole; then nothing has changed.
        """
        assert not self.is_leading and position.end_offset > self.committed_end_offset
        port = self._port
        image = self.snapshots.take(position, content, port.wall_ms(now_ms))
        before = self._restore_image(image, position.end_offset)
        for change in changes_between(before, port.image):
            port.on_change(change, now_ms)
        self.commit(position.end_offset, now_ms)

    def _restore_image(self, image: ClusterImage, end_offset: int) -> ClusterImage:
        """The image goes on from a snapshot; returns what it was before."""
        assert not self.is_leading and self.decided_image is self._port.image
        self.committed_end_offset = self._target_end_offset = end_offset
        return self._port.image.restore(image)

    def on_synced(self, now_ms: int) -> None:
        """More of the log is durable here."""
        self.quorum.on_synced(now_ms)

    def announce_partitions(self, now_ms: int) -> None:
        """The node hears of each partition once, as it is now, and not of its history.

        A topic that was deleted and made again has one directory name but two ids. By its
        history the node would open the new topic's files as the old one's, and delete them.
        """
        for name in sorted(self._port.image.topics):
            topic = self._port.image.topics[name]
            for index in range(len(topic.partitions)):
                self._port.on_change(partition_changed(topic, index), now_ms)

    def check(self) -> None:
        self._port.image.check_changes()
        self.decided_image.check_changes()
        assert self.committed_end_offset <= self.log.log_end_offset
        assert self.is_active or not self._proposals, "nobody would answer them"
        ends = [proposal.end_offset for proposal in self._proposals]
        assert ends == sorted(ends), ends
        assert not ends or ends[0] > self.committed_end_offset, "a forgotten proposal"
