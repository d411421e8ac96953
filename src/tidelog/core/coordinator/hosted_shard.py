"""One partition's coordinator on its leader: load, decide, append, apply, and answer at commit.

What it keeps beside the shard is who waits: operations that came while it was loading, and answers
that wait for the high watermark. If an append fails or the leadership is lost the whole object is
dropped, and everybody who waits is sent to look for the coordinator again. So there is no way
back from a decision, and none is needed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from tidelog.core.coordinator.log_port import CoordinatorLog
from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.coordinator.shard import CoordinatorShard
from tidelog.core.coordinator.shard_loader import ShardLoader
from tidelog.core.model.alarms import Alarm, Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.trace import Trace
from tidelog.core.wire.control_records import EndTransactionMarker, end_txn_marker
from tidelog.core.wire.records import NewRecord, build
from tidelog.core.wire.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

HOLD_MS_MAX = 500
"""How long a request may wait for the end of the replay before it is refused."""
HELD_MAX = 1_000
"""Requests that wait for one partition's replay; more are refused at once."""

TIMER_ROUNDS_MAX = 10
"""Batches that one turn may need for what is due; the rest waits for a millisecond."""

Shard = TypeVar("Shard", bound=CoordinatorShard)
Operation = Callable[[Shard, ReplyTo, int], Outcome]
"""Decides about one request: gets the shard, whom to answer, and the time."""
Duty = Callable[[Shard, int], Outcome]
"""Decides about an event that nobody waits for: a topic was deleted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorPort:
    """What a coordinator uses of its node."""

    answer: Callable[[ReplyTo, object], None]
    refuse: Callable[[ReplyTo, ErrorCode], None]
    alarms: Alarms
    wall_ms: Callable[[int], int]
    trace: Trace
    commit_timeout_ms: int
    """How long an answer waits for the high watermark."""
    compression: int
    """The codec of the batches, by Kafka's number."""
    read_bytes_max: int
    """Of one read while loading."""


class _Held(NamedTuple):
    operation: Callable[..., Outcome]
    reply_to: ReplyTo
    deadline_ms: int


class _ParkedReply(NamedTuple):
    required_offset: int
    """The high watermark must have come so far."""
    reply_to: ReplyTo
    answer: object
    deadline_ms: int


class HostedShard(Generic[Shard]):
    """Inputs: submit, perform, load, settle, drop. State: loader and held, or shard and parked.

    Invariants: required offsets and deadlines of parked answers only grow; nobody is answered
    twice, and everybody once: those who wait are in `waiting` until then.
    """

    def __init__(
        self, *, name: str, shard: Shard, log: CoordinatorLog, leader_epoch: int,
        port: CoordinatorPort, unsettled: dict[HostedShard[Shard], None],
        on_failed: Callable[[str], None], on_committed: Callable[[object], None] | None = None,
    ) -> None:  # fmt: skip
        self.name = name
        self.shard = shard
        self.leader_epoch = leader_epoch
        self.loader: ShardLoader | None = ShardLoader(
            shard, log, read_bytes_max=port.read_bytes_max
        )
        self.waiting: dict[ReplyTo, None] = {}
        self.parked: deque[_ParkedReply] = deque()
        self.after_commit: deque[tuple[int, object]] = deque()
        """Work that may begin when the high watermark has come so far; it never times out."""
        self._log = log
        self._port = port
        self._unsettled = unsettled
        self._on_failed = on_failed
        self._on_committed = on_committed
        self._held: deque[_Held] = deque()
        self._duties: list[Callable[..., Outcome]] = []
        self._alarm: Alarm | None = None
        self._is_dropped = False
        self._turn_ms = -1
        """When the last alarm came: what it left is for a later turn."""

    # Requests

    def submit(self, operation: Operation[Shard], reply_to: ReplyTo, now_ms: int) -> None:
        """Decide now, or as soon as the records are loaded."""
        if self.loader is None:
            self.waiting[reply_to] = None
            self._run(operation(self.shard, reply_to, now_ms), now_ms)
        elif len(self._held) >= HELD_MAX:
            self._port.refuse(reply_to, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        else:
            self.waiting[reply_to] = None
            self._held.append(_Held(operation, reply_to, now_ms + HOLD_MS_MAX))
            self._arm()

    def perform(self, duty: Duty[Shard], now_ms: int) -> None:
        """Decide about an event; while loading it waits for as long as that takes."""
        if self.loader is None:
            self._run(duty(self.shard, now_ms), now_ms)
        else:
            self._duties.append(duty)

    # Load

    def load(self, records_max: int, now_ms: int) -> int:
        """Apply up to so many records; how many it were. Raises CoordinatorLogUnreadable."""
        assert self.loader is not None, "loaded once"
        before = self.loader.records_count
        if self.loader.load(records_max) is None:
            loader, self.loader = self.loader, None
            self._begin(now_ms)
            return loader.records_count - before
        return records_max

    def _begin(self, now_ms: int) -> None:
        self._run(self.shard.on_loaded(now_ms), now_ms)
        duties, self._duties = self._duties, []
        for duty in duties:
            if not self._is_dropped:
                self._run(duty(self.shard, now_ms), now_ms)
        while self._held and not self._is_dropped:
            held = self._held.popleft()
            self._run(held.operation(self.shard, held.reply_to, now_ms), now_ms)

    # Decisions

    def _run(self, outcome: Outcome, now_ms: int) -> None:
        """Append, apply, and let the answers wait for the commit."""
        if (outcome.records or outcome.marker) and not self._append(outcome, now_ms):
            return
        self._park(outcome, now_ms)
        if outcome.then is not None:
            self._run(outcome.then(now_ms), now_ms)
        self._arm()

    def _append(self, outcome: Outcome, now_ms: int) -> bool:
        """False: nothing more is to be done for this outcome."""
        wall_ms = self._port.wall_ms(now_ms)
        batches: list[tuple[list[CoordinatorRecord], bytearray]] | None
        if outcome.marker is not None:
            batches = self._marker_batch(outcome, outcome.marker, wall_ms)
        else:
            batches = self._batches(outcome.records, wall_ms, outcome)
        if batches is None:
            self._on_too_large(outcome, now_ms)
            return False
        for records, batch in batches:
            offset = self._log.append(
                batch,
                leader_epoch=self.leader_epoch,
                wall_ms=wall_ms,
                verification=outcome.verification,
                transaction_version=outcome.transaction_version,
            )
            if offset is None:
                self._on_failed("nothing could be appended")
                return False
            if isinstance(offset, ErrorCode):
                assert outcome.producer is not None, "only a transaction can be refused"
                for reply_to, _ in outcome.replies:
                    self._refuse(reply_to, offset)
                return False
            self._apply(records, offset, wall_ms, outcome)
        return True

    def _batches(
        self, records: list[CoordinatorRecord], wall_ms: int, outcome: Outcome
    ) -> list[tuple[list[CoordinatorRecord], bytearray]] | None:
        """One batch, or several if that is allowed and needed; None: they do not fit."""
        producer = outcome.producer
        batch = build(
            [NewRecord(it.value, it.key, timestamp_ms=wall_ms) for it in records],
            compression=self._port.compression,
            producer_id=NO_PRODUCER_ID if producer is None else producer.producer_id,
            producer_epoch=NO_PRODUCER_EPOCH if producer is None else producer.producer_epoch,
            transactional=producer is not None,
        )
        if len(batch) <= self._log.batch_bytes_max:
            return [(records, batch)]
        if not outcome.may_be_split or len(records) == 1:
            return None
        half = len(records) // 2
        first = self._batches(records[:half], wall_ms, outcome)
        second = self._batches(records[half:], wall_ms, outcome)
        return None if first is None or second is None else first + second

    def _marker_batch(
        self, outcome: Outcome, marker: EndTransactionMarker, wall_ms: int
    ) -> list[tuple[list[CoordinatorRecord], bytearray]]:
        assert outcome.producer is not None and not outcome.records, "a marker stands alone"
        batch = build(
            [
                end_txn_marker(
                    commit=marker.commit,
                    coordinator_epoch=marker.coordinator_epoch,
                    timestamp_ms=wall_ms,
                )
            ],
            producer_id=outcome.producer.producer_id,
            producer_epoch=outcome.producer.producer_epoch,
            transactional=True,
            control=True,
        )
        return [([], batch)]

    def _apply(
        self, records: list[CoordinatorRecord], base_offset: int, wall_ms: int, outcome: Outcome
    ) -> None:
        producer, marker = outcome.producer, outcome.marker
        if producer is not None and marker is not None:
            self.shard.apply_marker(producer_id=producer.producer_id, is_commit=marker.commit)
        for at, record in enumerate(records):
            offset = base_offset + at
            if producer is None:
                self.shard.apply(record, offset=offset, timestamp_ms=wall_ms)
            else:
                self.shard.apply_transactional(
                    record,
                    producer_id=producer.producer_id,
                    offset=offset,
                    timestamp_ms=wall_ms,
                )

    def _on_too_large(self, outcome: Outcome, now_ms: int) -> None:
        if outcome.if_too_large is not None:
            self._run(outcome.if_too_large(), now_ms)
            return
        for reply_to, _ in outcome.replies:
            self._refuse(reply_to, ErrorCode.MESSAGE_TOO_LARGE)

    # Answers

    def _park(self, outcome: Outcome, now_ms: int) -> None:
        required_offset = self._log.log_end_offset
        deadline_ms = now_ms + self._port.commit_timeout_ms
        for reply_to, answer in outcome.replies:
            assert reply_to in self.waiting, "answered twice"
            self.parked.append(_ParkedReply(required_offset, reply_to, answer, deadline_ms))
        for work in outcome.after_commit:
            assert self._on_committed is not None, "nobody would do it"
            self.after_commit.append((required_offset, work))
        if outcome.replies or outcome.after_commit:
            self._unsettled[self] = None

    def settle(self) -> None:
        """The high watermark may have moved: answer whoever is covered, in order."""
        if not self._log.is_led_in(self.leader_epoch):
            self._on_failed("the leadership is lost")
            return
        high_watermark, parked = self._log.high_watermark, self.parked
        while parked and parked[0].required_offset <= high_watermark:
            first = parked.popleft()
            del self.waiting[first.reply_to]
            self._port.answer(first.reply_to, first.answer)
        work = self.after_commit
        while work and work[0][0] <= high_watermark:
            assert self._on_committed is not None
            self._on_committed(work.popleft()[1])
        if not parked and not work:
            self._unsettled.pop(self, None)

    def _refuse(self, reply_to: ReplyTo, error: ErrorCode) -> None:
        del self.waiting[reply_to]
        self._port.refuse(reply_to, error)

    def drop(self) -> None:
        """Forget everything; whoever waits, here or in the shard, looks for the coordinator."""
        self._is_dropped = True
        self._unsettled.pop(self, None)
        if self._alarm is not None:
            self._alarm.cancel()
        self._held.clear()
        self._duties.clear()
        self.parked.clear()
        self.after_commit.clear()
        waiting, self.waiting = self.waiting, {}
        for reply_to in waiting:
            self._port.refuse(reply_to, ErrorCode.NOT_COORDINATOR)

    # Time

    def _deadline_ms(self) -> int | None:
        deadlines = [queue[0].deadline_ms for queue in (self._held, self.parked) if queue]
        if self.loader is None:
            due_ms = self.shard.next_deadline_ms()
            if due_ms is not None:
                deadlines.append(due_ms)
        return min(deadlines, default=None)

    def _arm(self) -> None:
        """An alarm that is early does no harm: it looks, and sets the next one."""
        deadline_ms = self._deadline_ms()
        if deadline_ms is None or self._is_dropped:
            return
        deadline_ms = max(deadline_ms, self._turn_ms + 1)
        alarm = self._alarm
        if alarm is not None and alarm.is_pending:
            if alarm.deadline_ms <= deadline_ms:
                return
            alarm.cancel()
        self._alarm = self._port.alarms.at(deadline_ms, self._on_alarm)

    def _on_alarm(self, now_ms: int) -> None:
        """Refuse those who waited for too long; let the shard do what is due, a share per turn.

        After a failover thousands of sessions may end in the same moment.
        """
        self._turn_ms = now_ms
        if not self._log.is_led_in(self.leader_epoch):
            self._on_failed("the leadership is lost")
            return
        while self._held and self._held[0].deadline_ms <= now_ms:
            self._refuse(self._held.popleft().reply_to, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        while self.parked and self.parked[0].deadline_ms <= now_ms:
            # What was decided stays, and may still be committed: only the caller stops waiting.
            self._refuse(self.parked.popleft().reply_to, ErrorCode.COORDINATOR_NOT_AVAILABLE)
        for _ in range(TIMER_ROUNDS_MAX):
            if self._is_dropped or not self._is_due(now_ms):
                break
            self._run(self.shard.on_timer(now_ms), now_ms)
        self._arm()

    def _is_due(self, now_ms: int) -> bool:
        due_ms = None if self.loader is not None else self.shard.next_deadline_ms()
        return due_ms is not None and due_ms <= now_ms

    def check(self) -> None:
        assert not self._is_dropped, f"{self.name} was dropped"
        assert self.loader is not None or not self._held, "held for nothing"
        is_settled = not self.parked and not self.after_commit
        assert is_settled or self in self._unsettled, "nobody would settle it"
        required_offset = deadline_ms = 0
        for each in self.parked:
            assert each.reply_to in self.waiting, "an answer for nobody"
            assert required_offset <= each.required_offset <= self._log.log_end_offset
            assert deadline_ms <= each.deadline_ms, "out of order"
            required_offset, deadline_ms = each.required_offset, each.deadline_ms
        if self.loader is None:
            self.shard.check()
