"""A coordinator of counters over a log in memory: the runtime alone, without groups or brokers."""

from __future__ import annotations

from tidelog.core.coordinator.hosted_shard import CoordinatorPort
from tidelog.core.coordinator.log_port import CoordinatorLogUnreadable
from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.coordinator.runtime import CoordinatorRuntime
from tidelog.core.model.alarms import Alarms
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.trace import ListTrace
from tidelog.core.wire.record_batch import read_header, rebase

COMMIT_TIMEOUT_MS = 5_000


class MemoryLog:
    """One partition's log, and whether this node leads it."""

    def __init__(self) -> None:
        self.content = bytearray()
        self.log_start_offset = 0
        self.log_end_offset = 0
        self.high_watermark = 0
        self.batch_bytes_max = 10_000
        self.leader_epoch = 0
        self.is_broken = False
        self._positions: list[tuple[int, int]] = []

    def is_led_in(self, leader_epoch: int) -> bool:
        return leader_epoch == self.leader_epoch

    def read(self, start_offset: int, *, bytes_max: int) -> bytes:
        if self.is_broken:
            raise CoordinatorLogUnreadable("the disk is gone")
        position = 0
        for end_offset, end_position in self._positions:
            if end_offset > start_offset:
                return bytes(self.content[position : max(position + bytes_max, end_position)])
            position = end_position
        return b""

    def append(
        self,
        batch: bytearray,
        *,
        leader_epoch: int,
        wall_ms: int,
        verification: object | None = None,
        transaction_version: int = 0,
    ) -> int | None:
        if self.is_broken or leader_epoch != self.leader_epoch:
            return None
        base_offset = self.log_end_offset
        rebase(memoryview(batch), 0, base_offset=base_offset, leader_epoch=leader_epoch)
        self.content += batch
        self.log_end_offset += read_header(batch).last_offset_delta + 1
        self._positions.append((self.log_end_offset, len(self.content)))
        return base_offset

    def commit(self) -> None:
        self.high_watermark = self.log_end_offset


class CounterShard:
    """A number per name. Only `apply` changes it."""

    def __init__(self) -> None:
        self.counts: dict[bytes, int] = {}
        self.applied: list[tuple[bytes, int, int]] = []
        self.pending: list[tuple[int, bytes]] = []
        self.markers: list[tuple[int, bool]] = []
        self.loaded_ms: int | None = None
        self.deadline_ms: int | None = None
        self.parked_reply: ReplyTo | None = None

    def apply(self, record: CoordinatorRecord, *, offset: int, timestamp_ms: int) -> None:
        self.applied.append((record.key, offset, timestamp_ms))
        if record.value is None:
            self.counts.pop(record.key, None)
        else:
            self.counts[record.key] = len(record.value)

    def apply_transactional(
        self, record: CoordinatorRecord, *, producer_id: int, offset: int, timestamp_ms: int
    ) -> None:
        self.pending.append((producer_id, record.key))

    def apply_marker(self, *, producer_id: int, is_commit: bool) -> None:
        self.markers.append((producer_id, is_commit))

    def on_loaded(self, now_ms: int) -> Outcome:
        self.loaded_ms = now_ms
        return Outcome()

    def on_timer(self, now_ms: int) -> Outcome:
        self.deadline_ms = None
        reply_to, self.parked_reply = self.parked_reply, None
        replies: list[tuple[ReplyTo, object]] = []
        if reply_to is not None:
            replies.append((reply_to, "late"))
        return Outcome([CoordinatorRecord(b"timer", b"1")], replies)

    def next_deadline_ms(self) -> int | None:
        return self.deadline_ms

    def check(self) -> None:
        assert all(count > 0 for count in self.counts.values())


def count(name: bytes, times: int = 1) -> Increment:
    return Increment(name, times)


class Increment:
    """The operation: one more for a name; it answers the new number."""

    def __init__(self, name: bytes, times: int) -> None:
        self.name = name
        self.times = times

    def __call__(self, shard: CounterShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        number = shard.counts.get(self.name, 0) + self.times
        return Outcome(
            [CoordinatorRecord(self.name, b"x" * number)], [(reply_to, (self.name, number))]
        )


def look(shard: CounterShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
    """The operation that only reads."""
    return Outcome(replies=[(reply_to, dict(shard.counts))])


class Bench:
    """A runtime with its alarms, and what it answered."""

    def __init__(self) -> None:
        self.now_ms = 0
        self.alarms = Alarms()
        self.trace = ListTrace()
        self.answers: list[tuple[object, object]] = []
        self.shards: list[CounterShard] = []
        self.runtime = CoordinatorRuntime(
            topic="__counters",
            make_shard=self._make,
            port=CoordinatorPort(
                answer=lambda reply_to, answer: self.answers.append((reply_to, answer)),
                refuse=lambda reply_to, error: self.answers.append((reply_to, error)),
                alarms=self.alarms,
                wall_ms=lambda now_ms: now_ms + 1_000_000,
                trace=self.trace,
                commit_timeout_ms=COMMIT_TIMEOUT_MS,
                compression=0,
                read_bytes_max=500,
            ),
        )

    def _make(self, index: int) -> CounterShard:
        shard = CounterShard()
        self.shards.append(shard)
        return shard

    def lead(self, log: MemoryLog, index: int = 0) -> None:
        epoch_of_log = log.leader_epoch
        self.runtime.lead(index, log, leader_epoch=epoch_of_log, now_ms=self.now_ms)

    def submit(self, name: str, operation: Increment | None = None, index: int = 0) -> None:
        self.runtime.submit(index, operation or look, ReplyTo(name), self.now_ms)
        self.runtime.settle()
        self.runtime.check()

    def pass_time(self, milliseconds: int) -> None:
        """One turn per millisecond."""
        for _ in range(milliseconds):
            self.now_ms += 1
            self.alarms.run(self.now_ms)
            self.runtime.settle()
            self.runtime.check()

    def errors(self) -> list[tuple[object, ErrorCode]]:
        return [(who, what) for who, what in self.answers if isinstance(what, ErrorCode)]


def filled_log(records: int) -> MemoryLog:
    """A log that an earlier leader wrote, one record per batch."""
    bench, log = Bench(), MemoryLog()
    bench.lead(log)
    for number in range(records):
        bench.submit(f"write {number}", count(b"name %d" % number))
    log.commit()
    log.leader_epoch += 1
    return log
