"""Writers: plain ones that never retry, and idempotent ones that retry until they know."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdResponse
from tidelog.core.wire.records import NewRecord, build
from tidelog.core.wire.sentinels import ACKS_ALL
from tidelog.judge.anomalies import UNEXPECTED_ANSWER
from tidelog.judge.history import CallOutcome, ProducerIdGiven, Survives, Wrote
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.client import Outcome as Reply
from tidelog.worlds.simulator.payloads import to_value
from tidelog.worlds.simulator.profiles.storage_context import (
    DELETED,
    StorageContext,
    TrackedPartition,
)
from tidelog.worlds.simulator.requests import (
    PRODUCE_BY_ID_FROM,
    init_producer,
    produce,
    produce_answer,
)

IN_FLIGHT_MAX = 5
UNCERTAIN = frozenset({ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT})
"""Errors after which it is unknown whether the batch is in the log."""


@dataclass(slots=True, kw_only=True)
class WriterBatch:
    """A batch and its progress."""

    topic_partition: TrackedPartition
    payloads: tuple[str, ...]
    data: bytes
    acks: int
    invoked_us: int
    broker_run: int
    """Which run of the broker it was first sent to."""
    is_uncertain: bool = False
    is_under_way: bool = False


class StorageWriter:
    """What both kinds share: making batches and recording their outcomes."""

    def __init__(self, context: StorageContext, name: str) -> None:
        self.context = context
        self.name = name
        self.random = context.world.random_for(name)
        self.client = context.client(name)

    def make_batch(
        self,
        topic_partition: TrackedPartition,
        acks: int,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        count: int,
    ) -> WriterBatch:
        random = self.random
        payloads = tuple(self.context.new_payload(self.name) for _ in range(count))
        self.context.begin_write(topic_partition, payloads)
        wall_ms = self.context.process.wall_ms(self.context.world.now_ms)
        size_bytes = random.choice((0, 40, 150, 400))
        records = [
            NewRecord(
                value=to_value(payload, size_bytes),
                key=random.choice((None, payload.encode())),
                timestamp_ms=wall_ms - random.randrange(50),
                headers=[("by", self.name.encode())] if random.random() < 0.2 else [],
            )
            for payload in payloads
        ]
        data = build(
            records,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            compression=random.choice((0, 0, 0, 1, 2, 3, 4)),
        )
        return WriterBatch(
            topic_partition=topic_partition,
            payloads=payloads,
            data=bytes(data),
            acks=acks,
            invoked_us=self.context.world.now_us,
            broker_run=self.context.process.runs,
        )

    def version_for(self, topic_partition: TrackedPartition) -> int:
        if topic_partition.topic.by_id_only:
            return PRODUCE_BY_ID_FROM
        return self.random.choice((7, 8, 9, 10, 11, 12, 13))

    def record_outcome(
        self,
        batch: WriterBatch,
        outcome: CallOutcome,
        *,
        base_offset: int | None = None,
        error: str = "",
    ) -> None:
        is_safe = batch.acks == ACKS_ALL and self.context.fsync != "none"
        if base_offset is not None:
            topic_partition = batch.topic_partition
            topic_partition.topic.ends[topic_partition.index] = base_offset + len(batch.payloads)
        self.context.record(
            Wrote(
                at_us=self.context.world.now_us,
                invoked_us=batch.invoked_us,
                partition=batch.topic_partition.key,
                payloads=batch.payloads,
                outcome=outcome,
                base_offset=base_offset,
                survives=Survives.POWER_LOSS if is_safe else Survives.KILL,
                error=error or None,
            )
        )

    def check_refusal(self, batch: WriterBatch, code: int, foreseen: frozenset[ErrorCode]) -> None:
        if code not in foreseen and not (
            code in DELETED and batch.topic_partition.topic.is_deleted
        ):
            self.context.report_anomaly(
                UNEXPECTED_ANSWER,
                batch.topic_partition.key,
                request=f"produce by {self.name}",
                answer=f"error {code}",
            )


class PlainWriter(StorageWriter):
    """Writes with any acks and never retries."""

    def start(self) -> None:
        self.context.later(self.random, 0, 40, self._go_on)

    def _go_on(self) -> None:
        if self.context.is_over:
            return
        topic_partition = self.context.any_partition(self.random)
        if topic_partition is not None and self.client.in_flight < IN_FLIGHT_MAX:
            self._write(topic_partition)
        self.start()

    def _write(self, topic_partition: TrackedPartition) -> None:
        acks = self.random.choice((0, 1, 1, ACKS_ALL, ACKS_ALL, ACKS_ALL))
        batch = self.make_batch(topic_partition, acks, count=self.random.randint(1, 3))
        request = produce(topic_partition.topic.name, topic_partition.index, batch.data, acks=acks)
        version = self.version_for(topic_partition)
        if acks == 0:
            self.record_outcome(batch, CallOutcome.UNKNOWN)
            self.client.call(request, version, lambda answer: None, is_answered=False)
        else:
            self.client.call(request, version, lambda answer: self._on_answer(batch, answer))

    def _on_answer(self, batch: WriterBatch, answer: Reply) -> None:
        if isinstance(answer, CallFailed):
            outcome = CallOutcome.UNKNOWN if answer.was_sent else CallOutcome.REFUSED
            self.record_outcome(batch, outcome, error=answer.reason)
            return
        result = produce_answer(answer)
        if result.error_code == ErrorCode.NONE:
            self.record_outcome(batch, CallOutcome.OK, base_offset=result.base_offset)
            return
        is_uncertain = result.error_code in UNCERTAIN or batch.topic_partition.topic.is_deleted
        outcome = CallOutcome.UNKNOWN if is_uncertain else CallOutcome.REFUSED
        self.record_outcome(batch, outcome, error=str(result.error_code))
        self.check_refusal(batch, result.error_code, UNCERTAIN)


class IdempotentWriter(StorageWriter):
    """Numbers its batches, keeps up to five under way, and sends each until it knows its fate."""

    def __init__(self, context: StorageContext, name: str) -> None:
        super().__init__(context, name)
        self._producer: tuple[int, int] | None = None
        self._session_us = 0
        self._sequences: dict[str, int] = {}
        self._window: deque[WriterBatch] = deque()
        self._is_asking = False

    @property
    def is_idle(self) -> bool:
        return not self._window

    def start(self) -> None:
        self.context.later(self.random, 0, 40, self._go_on)

    def _go_on(self) -> None:
        if self.context.is_over and self.is_idle:
            return
        if self._producer is None:
            self._ask_for_id()
        else:
            self._send_again()
            if len(self._window) < IN_FLIGHT_MAX and not self.context.is_over:
                self._write_somewhere()
        self.start()

    def _ask_for_id(self) -> None:
        if not self._is_asking:
            self._is_asking = True
            self.client.call(init_producer(), self.random.choice((1, 3, 5)), self._on_id)

    def _on_id(self, answer: Reply) -> None:
        self._is_asking = False
        if not isinstance(answer, InitProducerIdResponse):
            return
        if answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return  # a slow disk: the block of ids is not committed yet
        if answer.error_code != ErrorCode.NONE:
            self.context.report_anomaly(
                UNEXPECTED_ANSWER, "-", request="InitProducerId", answer=answer.error_code
            )
            return
        self._producer = (answer.producer_id, answer.producer_epoch)
        self._session_us = self.context.world.now_us
        self._sequences = {}
        self.context.record(
            ProducerIdGiven(
                at_us=self.context.world.now_us,
                producer_id=answer.producer_id,
                producer_epoch=answer.producer_epoch,
            )
        )

    def _write_somewhere(self) -> None:
        """Nothing new while something waits to be sent again: five batches are remembered."""
        topic_partition = self.context.any_partition(self.random)
        if topic_partition is not None and all(batch.is_under_way for batch in self._window):
            self._write(topic_partition)

    def _write(self, topic_partition: TrackedPartition) -> None:
        assert self._producer is not None
        sequence = self._sequences.get(topic_partition.key, 0)
        count = self.random.randint(1, 3)
        batch = self.make_batch(
            topic_partition,
            ACKS_ALL,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            count=count,
        )
        self._sequences[topic_partition.key] = sequence + count
        self._window.append(batch)
        self._send(batch)

    def _send_again(self) -> None:
        """Whatever has no answer and is not under way goes out again, in order."""
        if not any(batch.is_under_way for batch in self._window):
            for batch in list(self._window):
                self._send(batch)

    def _send(self, batch: WriterBatch) -> None:
        batch.is_under_way = True
        batch.invoked_us = self.context.world.now_us
        topic_partition = batch.topic_partition
        request = produce(
            topic_partition.topic.name, topic_partition.index, batch.data, acks=ACKS_ALL
        )
        self.client.call(
            request,
            self.version_for(topic_partition),
            lambda answer: self._on_answer(batch, answer),
        )

    def _on_answer(self, batch: WriterBatch, answer: Reply) -> None:
        batch.is_under_way = False
        if batch not in self._window:
            return
        if isinstance(answer, CallFailed):
            batch.is_uncertain |= answer.was_sent
            return
        result = produce_answer(answer)
        if result.error_code == ErrorCode.NONE:
            self._window.remove(batch)
            self.record_outcome(batch, CallOutcome.OK, base_offset=result.base_offset)
        elif result.error_code in UNCERTAIN:
            batch.is_uncertain = True
        else:
            self._give_up(batch, result.error_code)

    def _newest_at(self, key: str) -> WriterBatch:
        """The only batch that a producer snapshot remembers: a restart may forget older ones."""
        return [batch for batch in self._window if batch.topic_partition.key == key][-1]

    def _give_up(self, batch: WriterBatch, code: int) -> None:
        """A final refusal: this session is over, a new one starts with another id."""
        key = batch.topic_partition.key
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            is_old = batch.broker_run < self.context.process.runs and batch is not self._newest_at(
                key
            )
            if not is_old and not self.context.was_excused(key, self._session_us):
                self.context.report_anomaly(
                    UNEXPECTED_ANSWER, key, request=self.name, answer="a gap without a loss"
                )
        else:
            self.check_refusal(batch, code, frozenset())
        for other in self._window:
            is_known = not other.is_uncertain and (other is batch or not other.is_under_way)
            outcome = CallOutcome.REFUSED if is_known else CallOutcome.UNKNOWN
            self.record_outcome(other, outcome, error=str(code))
        self._window.clear()
        self._producer = None
