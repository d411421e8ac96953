"""A follower of the metadata log: reads from the leader, cuts what the leader does not have.

One request is under way at a time. A voter's next request leaves only when everything it has
appended is durable here, since its offset is the acknowledgement that counts for the majority.
Where no leader is known, or the known one does not answer, any voter is asked: it tells who leads.

A leader that ends the connection may be dead. With `tidelog.failure.detection=connection` that is
found out by a probe, and a dead leader is replaced without waiting for the fetch timeout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.core.model.alarms import Alarm
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import METADATA_TOPIC_ID
from tidelog.core.model.voters import Voter
from tidelog.core.node.events import NodeHalted
from tidelog.core.node.metadata.metadata_port import MetadataPort
from tidelog.core.node.metadata.metadata_records import MetadataUnreadable
from tidelog.core.node.metadata.quorum_peers import PURPOSE, Backoff
from tidelog.core.node.metadata.snapshot_download import VERSION as SNAPSHOT_VERSION
from tidelog.core.node.metadata.snapshot_download import SnapshotDownload, chunk_of
from tidelog.core.quorum.divergence import cut_point
from tidelog.core.quorum.values import LogPosition
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.log import Log, OffsetsOutOfOrder
from tidelog.core.wire.links import Link, NoAnswer
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from tidelog.core.wire.messages.api_59_fetch_snapshot import FetchSnapshotResponse
from tidelog.core.wire.record_batch import CorruptBatch
from tidelog.core.wire.schema import Message

if TYPE_CHECKING:
    from tidelog.core.node.metadata.metadata_log import MetadataLog
    from tidelog.core.node.metadata.metadata_quorum import MetadataQuorum

VERSION = 18
WAIT_MS_MAX = 500
"""How long a leader holds a request back that it has nothing new for."""
LOST = ("closed", "reset", "refused")
UNKNOWN = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataTruncated:
    """Records that no majority had went: another leader has others in their place."""

    node_id: int
    from_end_offset: int
    to_end_offset: int
    leader_id: int
    quorum_epoch: int


class MetadataFetchClient:
    """Invariant: at most one request is under way, on `_link`, to `_target`."""

    def __init__(self, port: MetadataPort, metadata: MetadataLog, quorum: MetadataQuorum) -> None:
        self._port = port
        self._metadata = metadata
        self._quorum = quorum
        settings = port.settings
        self._backoff = Backoff(settings.integer("controller.quorum.retry.backoff.ms"))
        self._timeout_ms = settings.integer("controller.quorum.request.timeout.ms")
        self._bytes_max = settings.integer("controller.quorum.fetch.max.bytes")
        self._detects_by_connection = settings.text("tidelog.failure.detection") == "connection"
        self._target: Voter | None = None
        self._link: Link | None = None
        self._is_requesting = False
        self._is_taking = False
        """An answer is being taken: the next request depends on what becomes of it."""
        self._leader_when_sent: int | None = None
        self._asks_other_voter = False
        """The leader did not answer: the next request goes to another voter."""
        self._turn = 0
        self._alarm: Alarm | None = None
        self._snapshot = SnapshotDownload(port, metadata)
        self.requests_sent = 0
        self.on_read: Callable[[int, int], None] | None = None
        """Called with the number of a request, and the time, when its answer left nothing to read
        of what was committed."""

    @property
    def _log(self) -> Log:
        return self._metadata.log

    def close(self) -> None:
        """This node follows nobody any more."""
        if self._link is not None:
            self._link.close()
        self._link = self._target = None
        self._is_requesting = False

    def look(self, now_ms: int) -> None:
        """Send the next request, if it is time for one."""
        machine, log = self._quorum.machine, self._log
        if not machine.wants_fetch or self._is_taking or log.failed is not None:
            return
        if self._quorum.is_stopping:
            return
        if machine.leader_id not in (None, self._leader_when_sent):
            self.close()  # whatever the former leader would still say is of no interest
            self._backoff.worked()
            self._asks_other_voter = False
            self._snapshot.give_up()
        if self._is_requesting or not self._may_try(now_ms):
            return
        if machine.is_voter and log.synced_end_offset < log.log_end_offset:
            log.want_sync()
            return
        target = self._next_target()
        if target is not None:
            self._ask(target, now_ms)

    def _may_try(self, now_ms: int) -> bool:
        if now_ms >= self._backoff.until_ms:
            return True
        if self._alarm is None or not self._alarm.is_pending:
            self._alarm = self._port.alarms.at(self._backoff.until_ms, self.look)
        return False

    def _next_target(self) -> Voter | None:
        leader_id, others = self._quorum.machine.leader_id, self._quorum.other_voters()
        asks_leader = leader_id is not None and not (self._asks_other_voter and len(others) > 1)
        self._asks_other_voter = False
        if asks_leader:
            assert leader_id is not None
            return self._quorum.addresses[leader_id]
        others = [voter for voter in others if voter.node_id != leader_id]
        if not others:
            return None
        self._turn += 1
        return others[self._turn % len(others)]

    # Asking

    def _ask(self, target: Voter, now_ms: int) -> None:
        if self._link is None or self._target != target:
            self.close()
            self._open(target)
        assert self._link is not None
        machine = self._quorum.machine
        self._is_requesting = True
        self.requests_sent = number = self.requests_sent + 1
        self._leader_when_sent = machine.leader_id
        sent = self._quorum.log_view.position

        def then(answer: Message | NoAnswer, now_ms: int) -> None:
            self._is_requesting = False
            if isinstance(answer, NoAnswer):
                return  # the link is over, and `on_closed` follows
            self._is_taking = True
            if isinstance(answer, FetchResponse):
                self._on_answer(target.node_id, number, sent, answer, now_ms)
            elif isinstance(answer, FetchSnapshotResponse):
                self._on_chunk(target.node_id, answer, now_ms)
            self._is_taking = False
            self.look(now_ms)

        request: Message = self._request(sent)
        version = VERSION
        if self._snapshot.position is not None and target.node_id == machine.leader_id:
            request = self._snapshot.request(machine.quorum_epoch)
            version = SNAPSHOT_VERSION
        self._link.ask(request, version, then, timeout_ms=self._timeout_ms, now_ms=now_ms)

    def _open(self, target: Voter) -> None:
        def on_closed(reason: str, now_ms: int) -> None:
            if self._link is link:
                self._link = self._target = None
                self._on_lost(target, reason, now_ms)

        link = self._link = self._port.links.open(
            target.host, target.port, PURPOSE, on_closed=on_closed
        )
        self._target = target

    def _request(self, sent: LogPosition) -> FetchRequest:
        machine = self._quorum.machine
        high_watermark = machine.high_watermark
        partition = FetchPartition(
            partition=0,
            current_leader_epoch=machine.quorum_epoch,
            fetch_offset=sent.end_offset,
            last_fetched_epoch=sent.quorum_epoch,
            log_start_offset=self._log.log_start_offset,
            partition_max_bytes=self._bytes_max,
            replica_directory_id=self._metadata.identity.directory_ids[0],
            high_watermark=UNKNOWN if high_watermark is None else high_watermark,
        )
        return FetchRequest(
            cluster_id=self._metadata.cluster_id,
            replica_state=ReplicaState(replica_id=machine.node_id, replica_epoch=UNKNOWN),
            max_wait_ms=WAIT_MS_MAX,
            min_bytes=0,
            max_bytes=self._bytes_max,
            topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
        )

    def _on_lost(self, target: Voter, reason: str, now_ms: int) -> None:
        self._is_requesting = False
        self._backoff.failed(now_ms)
        machine, quorum = self._quorum.machine, self._quorum
        if target.node_id == machine.leader_id:
            self._asks_other_voter = True
            if self._detects_by_connection and machine.is_voter and reason in LOST:
                quorum_epoch = machine.quorum_epoch

                def then(is_dead: bool, now_ms: int) -> None:
                    if is_dead and machine.quorum_epoch == quorum_epoch:
                        quorum.on_leader_dead(target.node_id, now_ms)

                self._port.probes.probe(target.host, target.port, then, now_ms=now_ms)
        self.look(now_ms)

    # Answers

    def _on_answer(
        self, source: int, number: int, sent: LogPosition, answer: FetchResponse, now_ms: int
    ) -> None:
        answered = _partition_of(answer)
        if answered is None:
            self._backoff.failed(now_ms)
            return
        current = answered.current_leader
        leader_id = None if current.leader_id < 0 else current.leader_id
        error = ErrorCode.from_wire(answered.error_code)
        if (
            self._hears_leader(source, error, leader_id, current.leader_epoch, now_ms)
            and self._quorum.log_view.position == sent
        ):
            self._take(answered, now_ms)
            is_read = 0 <= answered.high_watermark <= self._metadata.committed_end_offset
            if is_read and self.on_read is not None:
                self.on_read(number, now_ms)

    def _hears_leader(
        self, source: int, error: ErrorCode, leader_id: int | None, quorum_epoch: int, now_ms: int
    ) -> bool:
        """Whether the answer is of our leader, and has something for us."""
        quorum, machine = self._quorum, self._quorum.machine
        knew = machine.leader_id, machine.quorum_epoch
        ready = machine.on_fetch_answer(
            source, error, leader_id=leader_id, quorum_epoch=quorum_epoch, now_ms=now_ms
        )
        quorum.step(ready, now_ms)
        if error == ErrorCode.NONE and machine.is_from_leader(source, quorum_epoch):
            self._backoff.worked()
            return True
        if (machine.leader_id, machine.quorum_epoch) == knew:
            self._backoff.failed(now_ms)  # nothing new: not at once again
        else:
            self._backoff.worked()
        return False

    # A snapshot

    def _begin_snapshot(self, position: LogPosition, now_ms: int) -> None:
        if position.end_offset > self._metadata.committed_end_offset:
            self._snapshot.begin(position)
        else:
            self._backoff.failed(now_ms)

    def _on_chunk(self, source: int, answer: FetchSnapshotResponse, now_ms: int) -> None:
        chunk = chunk_of(answer)
        if chunk is None:
            self._backoff.failed(now_ms)
        elif self._hears_leader(source, chunk.error, chunk.leader_id, chunk.quorum_epoch, now_ms):
            if self._snapshot.on_chunk(chunk.partition):
                self._install(now_ms)
        else:
            self._snapshot.give_up()

    def _install(self, now_ms: int) -> None:
        position, content = self._snapshot.position, self._snapshot.content
        assert position is not None
        self._snapshot.give_up()
        machine = self._quorum.machine
        try:
            self._metadata.take_snapshot(position, content, now_ms)
        except MetadataUnreadable:
            self._backoff.failed(now_ms)  # damaged on its way: nothing was changed
        except DiskError as error:
            self._port.on_disk_error(error)
        else:
            self._quorum.step(machine.on_leader_high_watermark(position.end_offset), now_ms)

    def _take(self, answered: PartitionData, now_ms: int) -> None:
        """What the leader of our epoch has for us: where to truncate, a snapshot, or records."""
        if answered.diverging_epoch.epoch >= 0:
            diverging = answered.diverging_epoch
            self._truncate(LogPosition(diverging.epoch, diverging.end_offset), now_ms)
        elif answered.snapshot_id.epoch >= 0:
            snapshot_id = answered.snapshot_id
            self._begin_snapshot(LogPosition(snapshot_id.epoch, snapshot_id.end_offset), now_ms)
        else:
            if answered.records:
                self._append(memoryview(answered.records), now_ms)
            if answered.high_watermark >= 0 and self._log.failed is None:
                machine = self._quorum.machine
                ready = machine.on_leader_high_watermark(answered.high_watermark)
                self._quorum.step(ready, now_ms)

    def _append(self, records: memoryview, now_ms: int) -> None:
        log, port = self._log, self._port
        try:
            appended = log.append_as_follower(records, wall_ms=port.wall_ms(now_ms))
        except (CorruptBatch, OffsetsOutOfOrder):
            self._backoff.failed(now_ms)  # damaged on its way: nothing was written
            return
        if appended.error != ErrorCode.NONE:
            port.on_log_failed(log)

    def _truncate(self, diverging: LogPosition, now_ms: int) -> None:
        log, machine, port = self._log, self._quorum.machine, self._port
        before = log.log_end_offset
        end_offset = cut_point(diverging, self._quorum.log_view)
        if end_offset < self._metadata.committed_end_offset:
            # Somebody has lost what a majority had promised to keep. Whatever we did now would
            # make two truths of one: better to stop and be looked at.
            reason = f"the leader has not what is committed before {before}"
            port.trace.emit(NodeHalted(node_id=machine.node_id, reason=reason))
            port.halt(reason)
            return
        log.truncate_to(end_offset, wall_ms=port.wall_ms(now_ms))
        assert machine.leader_id is not None
        port.trace.emit(
            MetadataTruncated(
                node_id=machine.node_id,
                from_end_offset=before,
                to_end_offset=log.log_end_offset,
                leader_id=machine.leader_id,
                quorum_epoch=machine.quorum_epoch,
            )
        )


def _partition_of(answer: FetchResponse) -> PartitionData | None:
    """None: the answer is about something else, or an error of the whole request."""
    if answer.error_code or not answer.responses or not answer.responses[0].partitions:
        return None
    if answer.responses[0].topic_id != METADATA_TOPIC_ID:
        return None
    return answer.responses[0].partitions[0]
