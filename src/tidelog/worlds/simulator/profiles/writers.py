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
from tidelog.worlds.simulator.client import Outcome as Answer
from tidelog.worlds.simulator.client import Trouble
from tidelog.worlds.simulator.payloads import to_value
from tidelog.worlds.simulator.profiles.scene import DELETED, Place, Scene
from tidelog.worlds.simulator.requests import (
    PRODUCE_BY_ID_FROM,
    init_producer,
    produce,
    produce_answer,
)

IN_FLIGHT_MAX = 5
UNCERTAIN = frozenset({ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.REQUEST_TIMED_OUT})
"""Errors after which nobody knows whether the batch is in the log."""


@dataclass(slots=True, kw_only=True)
class Batch:
    """What a writer wants to have written, whatever it takes."""

    place: Place
    payloads: tuple[str, ...]
    data: bytes
    acks: int
    invoked_us: int
    life: int
    """Which life of the broker it was first sent to."""
    is_uncertain: bool = False
    is_under_way: bool = False


class Writer:
    """What both kinds share: making batches and writing down how they ended."""

    def __init__(self, scene: Scene, name: str) -> None:
        self.scene = scene
        self.name = name
        self.random = scene.world.random_for(name)
        self.client = scene.client(name)

    def make_batch(
        self,
        place: Place,
        acks: int,
        *,
        producer_id: int = -1,
        producer_epoch: int = -1,
        base_sequence: int = -1,
        count: int,
    ) -> Batch:
        random = self.random
        payloads = tuple(self.scene.new_payload(self.name) for _ in range(count))
        self.scene.begin_write(place, payloads)
        wall_ms = self.scene.process.wall_ms(self.scene.world.now_ms)
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
        return Batch(
            place=place,
            payloads=payloads,
            data=bytes(data),
            acks=acks,
            invoked_us=self.scene.world.now_us,
            life=self.scene.process.runs,
        )

    def version_for(self, place: Place) -> int:
        if place.topic.by_id_only:
            return PRODUCE_BY_ID_FROM
        return self.random.choice((7, 8, 9, 10, 11, 12, 13))

    def write_down(
        self, batch: Batch, outcome: CallOutcome, *, base_offset: int | None = None, error: str = ""
    ) -> None:
        is_safe = batch.acks == ACKS_ALL and self.scene.fsync != "none"
        if base_offset is not None:
            place = batch.place
            place.topic.ends[place.index] = base_offset + len(batch.payloads)
        self.scene.record(
            Wrote(
                at_us=self.scene.world.now_us,
                invoked_us=batch.invoked_us,
                partition=batch.place.key,
                payloads=batch.payloads,
                outcome=outcome,
                base_offset=base_offset,
                survives=Survives.POWER_LOSS if is_safe else Survives.KILL,
                error=error or None,
            )
        )

    def check_refusal(self, batch: Batch, code: int, foreseen: frozenset[ErrorCode]) -> None:
        if code not in foreseen and not (code in DELETED and batch.place.topic.is_deleted):
            self.scene.complain(
                UNEXPECTED_ANSWER,
                batch.place.key,
                request=f"produce by {self.name}",
                answer=f"error {code}",
            )


class PlainWriter(Writer):
    """Writes with any acks and never asks twice."""

    def start(self) -> None:
        self.scene.later(self.random, 0, 40, self._go_on)

    def _go_on(self) -> None:
        if self.scene.is_over:
            return
        place = self.scene.any_place(self.random)
        if place is not None and self.client.in_flight < IN_FLIGHT_MAX:
            self._write(place)
        self.start()

    def _write(self, place: Place) -> None:
        acks = self.random.choice((0, 1, 1, ACKS_ALL, ACKS_ALL, ACKS_ALL))
        batch = self.make_batch(place, acks, count=self.random.randint(1, 3))
        request = produce(place.topic.name, place.index, batch.data, acks=acks)
        version = self.version_for(place)
        if acks == 0:
            self.write_down(batch, CallOutcome.UNKNOWN)
            self.client.call(request, version, lambda answer: None, is_answered=False)
        else:
            self.client.call(request, version, lambda answer: self._on_answer(batch, answer))

    def _on_answer(self, batch: Batch, answer: Answer) -> None:
        if isinstance(answer, Trouble):
            outcome = CallOutcome.UNKNOWN if answer.was_sent else CallOutcome.REFUSED
            self.write_down(batch, outcome, error=answer.reason)
            return
        told = produce_answer(answer)
        if told.error_code == ErrorCode.NONE:
            self.write_down(batch, CallOutcome.OK, base_offset=told.base_offset)
            return
        is_uncertain = told.error_code in UNCERTAIN or batch.place.topic.is_deleted
        outcome = CallOutcome.UNKNOWN if is_uncertain else CallOutcome.REFUSED
        self.write_down(batch, outcome, error=str(told.error_code))
        self.check_refusal(batch, told.error_code, UNCERTAIN)


class IdempotentWriter(Writer):
    """Numbers its batches, keeps up to five under way, and sends each until it knows its fate."""

    def __init__(self, scene: Scene, name: str) -> None:
        super().__init__(scene, name)
        self._producer: tuple[int, int] | None = None
        self._session_us = 0
        self._sequences: dict[str, int] = {}
        self._window: deque[Batch] = deque()
        self._is_asking = False

    @property
    def is_idle(self) -> bool:
        return not self._window

    def start(self) -> None:
        self.scene.later(self.random, 0, 40, self._go_on)

    def _go_on(self) -> None:
        if self.scene.is_over and self.is_idle:
            return
        if self._producer is None:
            self._ask_for_id()
        else:
            self._send_again()
            if len(self._window) < IN_FLIGHT_MAX and not self.scene.is_over:
                self._write_somewhere()
        self.start()

    def _ask_for_id(self) -> None:
        if not self._is_asking:
            self._is_asking = True
            self.client.call(init_producer(), self.random.choice((1, 3, 5)), self._on_id)

    def _on_id(self, answer: Answer) -> None:
        self._is_asking = False
        if not isinstance(answer, InitProducerIdResponse):
            return
        if answer.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
            return  # a slow disk: the block of ids is not committed yet
        if answer.error_code != ErrorCode.NONE:
            self.scene.complain(
                UNEXPECTED_ANSWER, "-", request="InitProducerId", answer=answer.error_code
            )
            return
        self._producer = (answer.producer_id, answer.producer_epoch)
        self._session_us = self.scene.world.now_us
        self._sequences = {}
        self.scene.record(
            ProducerIdGiven(
                at_us=self.scene.world.now_us,
                producer_id=answer.producer_id,
                producer_epoch=answer.producer_epoch,
            )
        )

    def _write_somewhere(self) -> None:
        """Nothing new while something waits to be sent again: five batches are remembered."""
        place = self.scene.any_place(self.random)
        if place is not None and all(batch.is_under_way for batch in self._window):
            self._write(place)

    def _write(self, place: Place) -> None:
        assert self._producer is not None
        sequence = self._sequences.get(place.key, 0)
        count = self.random.randint(1, 3)
        batch = self.make_batch(
            place,
            ACKS_ALL,
            producer_id=self._producer[0],
            producer_epoch=self._producer[1],
            base_sequence=sequence,
            count=count,
        )
        self._sequences[place.key] = sequence + count
        self._window.append(batch)
        self._send(batch)

    def _send_again(self) -> None:
        """Whatever has no answer and is not under way goes out again, in order."""
        if not any(batch.is_under_way for batch in self._window):
            for batch in list(self._window):
                self._send(batch)

    def _send(self, batch: Batch) -> None:
        batch.is_under_way = True
        batch.invoked_us = self.scene.world.now_us
        place = batch.place
        request = produce(place.topic.name, place.index, batch.data, acks=ACKS_ALL)
        self.client.call(
            request, self.version_for(place), lambda answer: self._on_answer(batch, answer)
        )

    def _on_answer(self, batch: Batch, answer: Answer) -> None:
        batch.is_under_way = False
        if batch not in self._window:
            return
        if isinstance(answer, Trouble):
            batch.is_uncertain |= answer.was_sent
            return
        told = produce_answer(answer)
        if told.error_code == ErrorCode.NONE:
            self._window.remove(batch)
            self.write_down(batch, CallOutcome.OK, base_offset=told.base_offset)
        elif told.error_code in UNCERTAIN:
            batch.is_uncertain = True
        else:
            self._give_up(batch, told.error_code)

    def _newest_at(self, key: str) -> Batch:
        """The only batch that a producer snapshot remembers: a restart may forget older ones."""
        return [batch for batch in self._window if batch.place.key == key][-1]

    def _give_up(self, batch: Batch, code: int) -> None:
        """A final refusal: this session is over, a new one starts with another id."""
        key = batch.place.key
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            is_old = batch.life < self.scene.process.runs and batch is not self._newest_at(key)
            if not is_old and not self.scene.was_excused(key, self._session_us):
                self.scene.complain(
                    UNEXPECTED_ANSWER, key, request=self.name, answer="a gap without a loss"
                )
        else:
            self.check_refusal(batch, code, frozenset())
        for other in self._window:
            is_known = not other.is_uncertain and (other is batch or not other.is_under_way)
            outcome = CallOutcome.REFUSED if is_known else CallOutcome.UNKNOWN
            self.write_down(other, outcome, error=str(code))
        self._window.clear()
        self._producer = None
