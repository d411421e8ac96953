"""This node's part in the metadata quorum: the pure machine, with disk, links and time around it.

Each input of the machine returns a `Ready`, which is carried out here in its order: the election
state is on the disk before a promise leaves, a new leader has written its first records before it
is asked for them. Questions to other voters are in quorum_peers.py, the follower's reading in
metadata_fetch_client.py, what a leader hands out in metadata_fetch_server.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidelog.core.model.alarms import Alarm
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.voters import Voter
from tidelog.core.node.metadata.metadata_fetch_client import MetadataFetchClient
from tidelog.core.node.metadata.metadata_fetch_server import MetadataFetchServer
from tidelog.core.node.metadata.metadata_port import MetadataPort
from tidelog.core.node.metadata.node_identity import CannotStart
from tidelog.core.node.metadata.quorum_peers import QuorumPeers
from tidelog.core.quorum.machine import Quorum
from tidelog.core.quorum.roles import Role
from tidelog.core.quorum.values import (
    ElectionState,
    LogPosition,
    Ready,
    RoleChanged,
    Timing,
    VoteAnswer,
    VoteCall,
)
from tidelog.core.storage import quorum_state
from tidelog.core.storage.disk import DiskError
from tidelog.core.storage.log import Log
from tidelog.core.storage.quorum_state import CorruptQuorumState, RememberedElection

if TYPE_CHECKING:
    from tidelog.core.node.metadata.metadata_log import MetadataLog
    from tidelog.core.node.metadata.snapshots import Snapshots


@dataclass(frozen=True, slots=True, kw_only=True)
class QuorumDescription:
    """How the quorum is, as this node sees it: for DescribeQuorum, tests and judges."""

    node_id: int
    is_voter: bool
    role: str
    quorum_epoch: int
    leader_id: int | None
    voted_for: int | None
    high_watermark: int | None
    log_end_offset: int
    synced_end_offset: int


class MetadataQuorum:
    """Invariant: nothing is sent before the machine has it stored."""

    def __init__(self, port: MetadataPort, metadata: MetadataLog) -> None:
        self._port = port
        self._metadata = metadata
        settings = port.settings
        self.addresses = {voter.node_id: voter for voter in settings.voters}
        self.voters = tuple(sorted(self.addresses)) or (settings.node_id,)
        self._machine: Quorum | None = None
        self._log_view: QuorumLogView | None = None
        self._log: Log | None = None
        self._alarm: Alarm | None = None
        self._is_failed = False
        self.is_stopping = False
        self.on_leader_found: list[Callable[[int], None]] = []
        """Called with the time when this node hears of a new leader, or becomes it."""
        self.peers = QuorumPeers(port, metadata, self)
        self.fetch_client = MetadataFetchClient(port, metadata, self)
        self.fetch_server = MetadataFetchServer(port, metadata, self)

    # What others ask

    @property
    def machine(self) -> Quorum:
        assert self._machine is not None, "not started"
        return self._machine

    @property
    def log_view(self) -> QuorumLogView:
        assert self._log_view is not None, "not started"
        return self._log_view

    @property
    def leader_id(self) -> int | None:
        """Who leads; None also while this node has resigned and nobody followed yet."""
        machine = self._machine
        if machine is None or machine.role is Role.RESIGNED:
            return None
        return machine.leader_id

    @property
    def quorum_epoch(self) -> int:
        return 0 if self._machine is None else self._machine.quorum_epoch

    @property
    def is_leader(self) -> bool:
        return self._machine is not None and self._machine.is_leader

    @property
    def is_alone(self) -> bool:
        return self.voters == (self._port.settings.node_id,)

    @property
    def high_watermark(self) -> int | None:
        return self.machine.published_high_watermark

    def leader_address(self) -> tuple[str, int] | None:
        """Where the leader is; None if it is unknown, or this node itself."""
        leader_id = self.leader_id
        if leader_id is None or leader_id == self._port.settings.node_id:
            return None
        voter = self.addresses[leader_id]
        return voter.host, voter.port

    def describe(self) -> QuorumDescription:
        machine = self.machine
        position = self.log_view.position
        return QuorumDescription(
            node_id=machine.node_id,
            is_voter=machine.is_voter,
            role=machine.role.value,
            quorum_epoch=machine.quorum_epoch,
            leader_id=machine.leader_id,
            voted_for=machine.voted_for,
            high_watermark=machine.published_high_watermark,
            log_end_offset=position.end_offset,
            synced_end_offset=self.log_view.synced_end_offset,
        )

    # Life

    def start(self, log: Log, now_ms: int) -> None:
        """A voter alone leads when this returns; the others ask around."""
        port = self._port
        self._log = log
        self._log_view = QuorumLogView(log, self._metadata.snapshots)
        self._log_view.counts_unsynced = self.is_alone
        settings = port.settings
        self._machine = Quorum(
            node_id=settings.node_id,
            voters=self.voters,
            log=self._log_view,
            timing=Timing(
                election_timeout_ms=settings.integer("controller.quorum.election.timeout.ms"),
                fetch_timeout_ms=settings.integer("controller.quorum.fetch.timeout.ms"),
                election_backoff_max_ms=settings.integer(
                    "controller.quorum.election.backoff.max.ms"
                ),
            ),
            random=port.random,
            stored=self._read_state(log.directory),
        )
        self._machine.high_watermark = log.high_watermark or None
        self.step(self._machine.on_start(now_ms), now_ms)

    def finish_start(self, now_ms: int) -> None:
        """One sync for everything that the start of a voter alone has written."""
        log_view, log = self.log_view, self._log
        if log_view.counts_unsynced and log is not None:
            log.files.sync_now(log.log_end_offset, with_parent=True)
            log_view.counts_unsynced = False

    def resign(self, now_ms: int) -> None:
        """At a clean stop: the others elect a leader at once."""
        self.is_stopping = True
        self.step(self.machine.resign(now_ms), now_ms)
        self.fetch_client.close()

    def on_leader_dead(self, leader_id: int, now_ms: int) -> None:
        """The process of this leader is proven to be gone."""
        self.step(self.machine.on_leader_dead(leader_id, now_ms), now_ms)

    # The log

    def append(self, batches: bytearray, now_ms: int) -> bool:
        """As the leader: write at the end. False: the disk refused, and the node ends."""
        port, log = self._port, self._log
        assert log is not None and self.is_leader
        appended = log.append_as_leader(
            memoryview(batches),
            leader_epoch=self.quorum_epoch,
            wall_ms=port.wall_ms(now_ms),
            from_client=False,
        )
        if appended.error == ErrorCode.NONE:
            return True
        port.on_log_failed(log)
        return False

    def on_appended(self, now_ms: int) -> None:
        """Followers that wait hear of it; our own share of the majority is what is synced."""
        assert self._log is not None
        self.fetch_server.on_moved()
        if self.log_view.counts_unsynced:
            self.on_synced(now_ms)
        else:
            self._log.want_sync()

    def on_synced(self, now_ms: int) -> None:
        self.step(self.machine.on_synced(now_ms), now_ms)

    def refuse_as_leader(self, quorum_epoch: int) -> ErrorCode:
        """Why a request to the leader of this epoch is not ours to answer."""
        machine = self.machine
        if quorum_epoch < machine.quorum_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if quorum_epoch > machine.quorum_epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if not machine.is_leader:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NONE

    # Votes

    def on_vote_call(self, call: VoteCall, now_ms: int) -> VoteAnswer | None:
        """The answer, its promise durable; None if this node can promise nothing any more."""
        ready = self.machine.on_vote_call(call, now_ms)
        self.step(ready, now_ms)
        return None if self._is_failed else ready.reply

    # Carrying out

    def step(self, ready: Ready, now_ms: int) -> None:
        """The order of these lines is the promise."""
        if ready.store is not None and not self._store(ready.store):
            return
        if ready.granted is not None:
            self._port.trace.emit(ready.granted)
        try:
            for change in ready.changes:
                self._on_role(change, now_ms)
            if ready.high_watermark is not None:
                self._on_high_watermark(ready.high_watermark, now_ms)
        except DiskError as error:  # what is committed could not be read again
            self._fail(error)
        if not self._is_failed:
            self.peers.look(now_ms)
            self.fetch_client.look(now_ms)
        self._arm()

    def _store(self, state: ElectionState) -> bool:
        """A voter alone promises nothing to anybody: its own log knows its epochs."""
        assert self._log is not None
        remembered = RememberedElection(state.quorum_epoch, state.leader_id, state.voted_for)
        try:
            quorum_state.write(
                self._port.disk, self._log.directory, remembered, durably=not self.is_alone
            )
        except DiskError as error:
            self._fail(error)
            return False
        return True

    def _fail(self, error: DiskError) -> None:
        self._is_failed = True
        self._port.on_disk_error(error)

    def _read_state(self, directory: str) -> ElectionState | None:
        try:
            found = quorum_state.read(self._port.disk, directory)
        except CorruptQuorumState as error:
            if self.is_alone:
                return None
            raise CannotStart(f"votes cast before are unknown: {error}") from error
        if found is None:
            return None
        return ElectionState(found.leader_epoch, found.leader_id, found.voted_id)

    def _on_role(self, change: RoleChanged, now_ms: int) -> None:
        port = self._port
        port.trace.emit(change)
        if change.role is Role.LEADER:
            leadership = self.machine.leadership
            assert leadership is not None
            self.fetch_client.close()
            self._metadata.begin_leading(change, leadership.granted_by, now_ms)
        elif self._metadata.is_leading:
            self._metadata.stop_leading(now_ms)
            self.fetch_server.on_leadership_lost()
        if change.role in (Role.LEADER, Role.FOLLOWER):
            for then in self.on_leader_found:
                then(now_ms)

    def _on_high_watermark(self, high_watermark: int, now_ms: int) -> None:
        assert self._log is not None
        self._log.advance_high_watermark(high_watermark)
        self.fetch_server.on_moved()
        self._metadata.commit(high_watermark, now_ms)

    def _arm(self) -> None:
        """An alarm that rings too early is set again; a deadline that moves on needs no new one."""
        deadline_ms = self.machine.deadline_ms
        if deadline_ms is None or self.is_stopping:
            return
        alarm = self._alarm
        if alarm is not None and alarm.is_pending:
            if alarm.deadline_ms <= deadline_ms:
                return
            alarm.cancel()
        self._alarm = self._port.alarms.at(deadline_ms, self._on_alarm)

    def _on_alarm(self, now_ms: int) -> None:
        if not self.is_stopping:
            self.step(self.machine.on_tick(now_ms), now_ms)

    def other_voters(self) -> list[Voter]:
        mine = self._port.settings.node_id
        return [self.addresses[voter] for voter in self.voters if voter != mine]

    def check(self) -> None:
        machine = self.machine
        machine.check()
        assert machine.is_leader == self._metadata.is_leading
        if machine.high_watermark is not None and self._log is not None:
            assert machine.high_watermark <= self._log.log_end_offset


class QuorumLogView:
    """The metadata log as the quorum's machine sees it: positions, epochs, and what is durable."""

    def __init__(self, log: Log, snapshots: Snapshots) -> None:
        self._log = log
        self._snapshots = snapshots
        self.counts_unsynced = False
        """A voter alone, while it starts: one sync at the end, before anybody hears of anything."""

    @property
    def position(self) -> LogPosition:
        log = self._log
        newest = log.latest_leader_epoch
        if newest is None:
            snapshot = self._snapshots.newest  # the log is empty: its end lies in that epoch
            newest = 0 if snapshot is None else snapshot.quorum_epoch
        return LogPosition(newest, log.log_end_offset)

    @property
    def synced_end_offset(self) -> int:
        log = self._log
        return log.log_end_offset if self.counts_unsynced else log.synced_end_offset

    @property
    def log_start_offset(self) -> int:
        return self._log.log_start_offset

    def end_of(self, quorum_epoch: int) -> LogPosition | None:
        found = self._log.leader_epoch_end(quorum_epoch)
        return None if found is None else LogPosition(*found)
