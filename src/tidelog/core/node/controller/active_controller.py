"""The active controller of a cluster: it admits and fences brokers and keeps partitions led.

It acts on the decided image, so each decision sees the ones before it, and no answer is ever taken
back: answers wait until everything decided so far is committed. On a node that does not lead the
quorum it does nothing.

Two things end a broker's session: silence, and with `tidelog.failure.detection=connection` the
proof that its process is dead. A connection that breaks is only a hint; the proof is that nobody
listens where the broker said that it would.
"""

# Size: every event of the active controller, and the order in which it acts on it.

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from tidelog.core.controller.admission import Newcomer, decide_admission, refuse_newcomer
from tidelog.core.controller.alter_partition import (
    IsrChange,
    IsrChanged,
    decide_isr_changes,
    refuse_broker_epoch,
)
from tidelog.core.controller.broker_fencing import decide_fencing, decide_forgetting
from tidelog.core.controller.decision import RECORDS_PER_DECISION_MAX, Refusal
from tidelog.core.controller.directories import Placed, decide_directories
from tidelog.core.controller.elect_leaders import (
    ElectionRequest,
    decide_balance,
    decide_elections,
    decide_unclean_round,
)
from tidelog.core.controller.election import Election
from tidelog.core.controller.election_settings import ElectionSettings
from tidelog.core.controller.events import BrokerRefused, ControllerActivated, ControllerResigned
from tidelog.core.controller.heartbeat import Standing
from tidelog.core.controller.liveness import Sessions
from tidelog.core.controller.partition_changes import PartitionChanges
from tidelog.core.controller.producer_ids import decide_block
from tidelog.core.controller.reassignment import ReassignmentRequest, decide_reassignments
from tidelog.core.metadata.cluster import RegisteredBroker
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import MetadataRecord, NoOpRecord
from tidelog.core.model.alarms import Alarm, Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.trace import Trace
from tidelog.core.node.connections.liveness_probes import LivenessProbes
from tidelog.core.node.controller.broker_heartbeats import (
    BrokerHeartbeats,
    Heartbeat,
    HeartbeatOutcome,
)
from tidelog.core.node.metadata.metadata_log import MetadataLog
from tidelog.core.node.settings import NodeSettings

Act = Callable[[int], None]

PROBE_INTERVAL_MS = 500
"""For brokers that are not fenced, and that we have no connection with."""


class ConnectionLosses(Protocol):
    def on_connection_lost(self, broker_id: int, now_ms: int) -> None:
        """A connection with that broker, which was open, has ended."""


class ActiveController:
    """Invariant: while this node is not active there are no sessions and no alarms."""

    def __init__(
        self,
        *,
        settings: NodeSettings,
        metadata: MetadataLog,
        probes: LivenessProbes,
        departures: ConnectionLosses,
        alarms: Alarms,
        trace: Trace,
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self._probes = probes
        self._departures = departures
        self._alarms = alarms
        self._trace = trace
        self._timeout_ms = settings.integer("broker.session.timeout.ms")
        self._interval_ms = settings.integer("broker.heartbeat.interval.ms")
        self._trusts_connections = settings.text("tidelog.failure.detection") == "connection"
        self.sessions = Sessions(timeout_ms=self._timeout_ms)
        self._heartbeats = BrokerHeartbeats(self)
        self._session_alarm: Alarm | None = None
        self._probe_alarm: Alarm | None = None
        self._rounds: list[Alarm] = []

    @property
    def image(self) -> ClusterImage:
        return self._metadata.decided_image

    @property
    def settings(self) -> ElectionSettings:
        """As they are now, in the decided image."""
        return ElectionSettings(self.image, self._settings.texts)

    @property
    def next_offset(self) -> int:
        """Where the next record of the metadata log will stand."""
        return self._metadata.log.log_end_offset

    @property
    def own_reading(self) -> tuple[int, int]:
        """This node, and how far its own image is."""
        return self._settings.node_id, self._metadata.applied_end_offset

    # Taking over and resigning

    def on_activated(self, now_ms: int) -> None:
        """The decided image is complete. Every broker gets a full session, and a probe."""
        brokers = list(self.image.brokers.values())
        self.sessions.start(brokers, now_ms=now_ms)
        self._trace.emit(
            ControllerActivated(
                controller_epoch=self._metadata.controller_epoch, brokers=len(brokers)
            )
        )
        self._arm_sessions()
        self._start_rounds(now_ms)
        self._probe_unheard(now_ms)

    def on_resigned(self, now_ms: int) -> None:
        self._trace.emit(ControllerResigned(controller_epoch=self._metadata.controller_epoch))
        self.sessions.clear()
        for alarm in (self._session_alarm, self._probe_alarm, *self._rounds):
            if alarm is not None:
                alarm.cancel()
        self._session_alarm = self._probe_alarm = None
        self._rounds.clear()

    def on_paused(self, now_ms: int) -> None:
        """This node stood still: another may lead by now. Answers wait for the commit of all that
        was written before, so a record that needs a majority of today holds them back until this
        node knows whether it is still the controller."""
        self._metadata.propose([NoOpRecord()], None, now_ms=now_ms)

    # What brokers and clients ask for; the answers wait for the commit (committed_answers.py)

    def register(self, newcomer: Newcomer, *, is_own: bool, now_ms: int) -> int | Refusal:
        """The broker epoch of a process that may register. `is_own`: it is this process."""
        known = self.image.brokers.get(newcomer.broker_id)
        refusal = refuse_newcomer(
            self.image,
            newcomer,
            cluster_id=self._metadata.cluster_id,
            former_may_live=(
                known is not None and not is_own and self._former_may_live(known, newcomer, now_ms)
            ),
        )
        if refusal is not None:
            refused = BrokerRefused(broker_id=newcomer.broker_id, error=refusal.error)
            self._trace.emit(refused)
            return refusal
        changes, broker_epoch = decide_admission(
            self.image, self.settings, newcomer, next_offset=self.next_offset
        )
        self.write(changes, now_ms)
        if known is None or known.incarnation_id != newcomer.incarnation_id:
            self.sessions.end(newcomer.broker_id)
        return broker_epoch

    def heartbeat(self, beat: Heartbeat, now_ms: int) -> HeartbeatOutcome | ErrorCode:
        error = refuse_broker_epoch(
            self.image, broker_id=beat.broker_id, broker_epoch=beat.broker_epoch
        )
        if error != ErrorCode.NONE:
            return error
        pulse = self._heartbeats.take(beat, now_ms)
        if pulse.standing is Standing.GONE:
            self.sessions.end(beat.broker_id)
        self._arm_sessions()
        return pulse

    def on_metadata_read(self, broker_id: int, end_offset: int) -> None:
        """A broker says so in its heartbeats, and sooner in every fetch of the metadata."""
        session = self.sessions.get(broker_id)
        if session is not None:
            session.metadata_end_offset = max(session.metadata_end_offset, end_offset)

    def on_metadata_fetched(self, broker_id: int, *, connection: int | None) -> None:
        """Until its first heartbeat to us, this connection will do to find out that it died."""
        session = self.sessions.get(broker_id)
        if session is not None and session.connection is None:
            session.connection = connection

    def change_isrs(
        self, *, broker_id: int, broker_epoch: int, changes: Sequence[IsrChange], now_ms: int
    ) -> list[IsrChanged] | ErrorCode:
        error = refuse_broker_epoch(self.image, broker_id=broker_id, broker_epoch=broker_epoch)
        if error != ErrorCode.NONE:
            return error
        decision = decide_isr_changes(self.image, self.settings, leader=broker_id, requests=changes)
        self.propose(decision.records, decision.events, now_ms)
        return decision.outcomes

    def take_down_directories(
        self, *, broker_id: int, broker_epoch: int, reported: Sequence[Placed], now_ms: int
    ) -> list[ErrorCode] | ErrorCode:
        error = refuse_broker_epoch(self.image, broker_id=broker_id, broker_epoch=broker_epoch)
        if error != ErrorCode.NONE:
            return error
        changes, errors = decide_directories(
            self.image, self.settings, broker_id=broker_id, reported=reported
        )
        self.write(changes, now_ms)
        return errors

    def elect(
        self, requests: Sequence[ElectionRequest], election: Election, now_ms: int
    ) -> list[ElectionRequest]:
        changes, outcomes = decide_elections(self.image, self.settings, requests, election)
        self.write(changes, now_ms)
        return outcomes

    def reassign(
        self, requests: Sequence[ReassignmentRequest], *, may_change_factor: bool, now_ms: int
    ) -> list[ReassignmentRequest]:
        changes, outcomes = decide_reassignments(
            self.image, self.settings, requests, may_change_factor=may_change_factor
        )
        self.write(changes, now_ms)
        return outcomes

    def forget(self, broker_id: int, now_ms: int) -> Refusal | None:
        if broker_id not in self.image.brokers:
            return Refusal(
                ErrorCode.BROKER_ID_NOT_REGISTERED, f"broker {broker_id} is not registered"
            )
        self.write(decide_forgetting(self.image, self.settings, broker_id=broker_id), now_ms)
        self.sessions.end(broker_id)
        return None

    def reserve_producer_ids(
        self, *, broker_id: int, broker_epoch: int, now_ms: int
    ) -> range | ErrorCode:
        error = refuse_broker_epoch(self.image, broker_id=broker_id, broker_epoch=broker_epoch)
        if error != ErrorCode.NONE:
            return error
        record, block = decide_block(self.image, broker_id=broker_id)
        self.propose([record], (), now_ms)
        return block

    # Who is dead

    def on_connection_closed(self, connection: int, now_ms: int) -> None:
        """A broker may have been heard on it: then it is time to probe it."""
        for session in self.sessions.on_connection_closed(connection):
            broker = self.image.brokers.get(session.broker_id)
            if broker is not None and broker.broker_epoch == session.broker_epoch:
                self._departures.on_connection_lost(session.broker_id, now_ms)
                self._probe(broker, now_ms)
                self._probe_later(now_ms)

    def on_broker_dead(self, broker_id: int, now_ms: int) -> None:
        """Its process is known to have ended: do not wait for the session."""
        if self._metadata.is_active and broker_id in self.image.brokers:
            self.sessions.end(broker_id)
            self._fence((broker_id,), "its process is dead", now_ms)

    def _probe_unheard(self, now_ms: int) -> None:
        """A broker without a connection to us may die unnoticed: probe it now and then."""
        unheard = [
            broker
            for broker in self.image.brokers.values()
            if not broker.is_fenced
            and broker.broker_id != self._settings.node_id
            and not self.sessions.has_connection(broker)
        ]
        for broker in unheard:
            self._probe(broker, now_ms)
        if unheard:
            self._probe_later(now_ms)

    def _probe_later(self, now_ms: int) -> None:
        is_set = self._probe_alarm is not None and self._probe_alarm.is_pending
        if self._trusts_connections and not is_set:
            self._probe_alarm = self._alarms.at(now_ms + PROBE_INTERVAL_MS, self._probe_unheard)

    def _probe(self, broker: RegisteredBroker, now_ms: int) -> None:
        if not self._trusts_connections or not broker.endpoints:
            return
        endpoint = broker.endpoints[0]

        def then(is_dead: bool, now_ms: int) -> None:
            known = self.image.brokers.get(broker.broker_id)
            session = self.sessions.get(broker.broker_id)
            was_heard_again = session is not None and session.is_heard
            is_same = known is not None and known.broker_epoch == broker.broker_epoch
            if is_dead and is_same and not was_heard_again:
                self.on_broker_dead(broker.broker_id, now_ms)

        self._probes.probe(endpoint.host, endpoint.port, then, now_ms=now_ms)

    def _former_may_live(self, known: RegisteredBroker, newcomer: Newcomer, now_ms: int) -> bool:
        """Silence ends a session. Sooner, only the dead make room for another process:

        log directories and the address of a listener belong to one process alone. Whoever has
        those of the former one proves that it is gone, unless we still hear it.
        """
        session = self.sessions.get(known.broker_id)
        if session is None or not self.sessions.is_valid(known, now_ms=now_ms):
            return False
        silence_ms = now_ms - session.contact_ms
        is_heard = session.is_heard and 2 * silence_ms < 3 * self._interval_ms
        has_its_resources = newcomer.endpoints[:1] == known.endpoints[:1] or not (
            set(known.log_directories).isdisjoint(newcomer.log_directories)
        )
        return is_heard or not has_its_resources or not self._trusts_connections

    # By itself

    def _arm_sessions(self) -> None:
        """One alarm for all: a heartbeat only moves a deadline further away."""
        deadline_ms = self.sessions.next_deadline_ms()
        is_set = self._session_alarm is not None and self._session_alarm.is_pending
        if deadline_ms is not None and not is_set:
            self._session_alarm = self._alarms.at(deadline_ms, self._end_sessions)

    def _end_sessions(self, now_ms: int) -> None:
        assert self._session_alarm is not None
        if now_ms - self._session_alarm.deadline_ms > self._interval_ms:
            # We were asleep ourselves: what they said meanwhile may still wait to be read.
            self.sessions.prolong(now_ms)
        silent = []
        for session in self.sessions.take_expired(now_ms):
            broker = self.image.brokers.get(session.broker_id)
            if broker is not None and broker.broker_epoch == session.broker_epoch:
                silent.append(session.broker_id)
        self._fence(silent, "its session ended", now_ms)
        self._arm_sessions()

    def _fence(self, broker_ids: Sequence[int], reason: str, now_ms: int) -> None:
        changes = decide_fencing(self.image, self.settings, broker_ids=broker_ids, reason=reason)
        self.write(changes, now_ms)

    def _start_rounds(self, now_ms: int) -> None:
        settings = self._settings
        unclean_ms = settings.integer("unclean.leader.election.interval.ms")
        self._rounds = [self._alarms.at(now_ms + unclean_ms, self._elect_unclean)]
        balance_ms = settings.integer("leader.imbalance.check.interval.seconds") * 1_000
        if settings.boolean("auto.leader.rebalance.enable"):
            self._rounds.append(self._alarms.at(now_ms + balance_ms, self._balance))

    def _balance(self, now_ms: int) -> None:
        changes, is_more = decide_balance(self.image, self.settings)
        interval_s = self._settings.integer("leader.imbalance.check.interval.seconds")
        self._next_round(changes, is_more, interval_s * 1_000, self._balance, now_ms)

    def _elect_unclean(self, now_ms: int) -> None:
        changes, is_more = decide_unclean_round(self.image, self.settings)
        interval_ms = self._settings.integer("unclean.leader.election.interval.ms")
        self._next_round(changes, is_more, interval_ms, self._elect_unclean, now_ms)

    def _next_round(
        self, changes: PartitionChanges, is_more: bool, interval_ms: int, act: Act, now_ms: int
    ) -> None:
        self.write(changes, now_ms)
        self._rounds = [alarm for alarm in self._rounds if alarm.is_pending]
        wait_ms = 0 if is_more else interval_ms
        self._rounds.append(self._alarms.at(now_ms + wait_ms, act))

    # Writing

    def write(self, changes: PartitionChanges, now_ms: int) -> None:
        self.propose(changes.records, changes.events, now_ms)

    def propose(
        self, records: Sequence[MetadataRecord], events: Iterable[object], now_ms: int
    ) -> None:
        """In portions, if there are many: their order makes every prefix of them true."""
        emitted = tuple(events)

        def then() -> None:
            for event in emitted:
                self._trace.emit(event)

        for start in range(0, len(records), RECORDS_PER_DECISION_MAX):
            portion = records[start : start + RECORDS_PER_DECISION_MAX]
            is_final = start + RECORDS_PER_DECISION_MAX >= len(records)
            self._metadata.propose(portion, then if is_final else None, now_ms=now_ms)
        if not records:
            then()

    def check(self) -> None:
        """Whoever is not fenced has a session, so that its silence is noticed; see the class."""
        is_watched = self._session_alarm is not None and self._session_alarm.is_pending
        if not self._metadata.is_active:
            assert not len(self.sessions) and not is_watched and not self._rounds
            return
        assert is_watched or not len(self.sessions), "no session would ever end"
        assert any(alarm.is_pending for alarm in self._rounds), "no election would be held again"
        for broker in self.image.brokers.values():
            session = self.sessions.get(broker.broker_id)
            if not broker.is_fenced:
                assert session is not None, f"broker {broker.broker_id} could die unnoticed"
                assert session.broker_epoch == broker.broker_epoch, broker.broker_id
