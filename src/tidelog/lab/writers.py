"""Writers: one batch per call, straight to a broker, with exactly what the broker answered.

A writer keeps no buffer and retries nothing by itself, so a story decides about every batch: when
it is sent, to whom, and whether the same bytes are sent again. Kafka's own producer, which decides
all that for itself, is `Lab.producer`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from tidelog.client.partition_requests import produce_answer, produce_request
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.wire.messages.api_00_produce import ProduceResponse
from tidelog.core.wire.records import NewRecord, build
from tidelog.lab.engine import MissingAnswer, Pending
from tidelog.lab.evidence import Topic

if TYPE_CHECKING:
    from tidelog.lab.lab import Lab

PRODUCE_VERSION = 13
PRODUCE_TIMEOUT_MS = 30_000


class WriteAnswer(NamedTuple):
    """What a broker answered to a batch; without an answer, why there is none."""

    error: ErrorCode | None
    offset: int | None = None
    reason: str | None = None

    @property
    def is_ok(self) -> bool:
        return self.error is ErrorCode.NONE


class WrittenBatch:
    """Some records that a writer sent at least once."""

    def __init__(
        self,
        topic: Topic,
        index: int,
        payloads: tuple[str, ...],
        data: bytes,
        *,
        acks: int,
        writer: str,
    ) -> None:
        self.writer = writer
        self.topic = topic
        self.index = index
        self.payloads = payloads
        self.data = data
        self.acks = acks
        self.tries: list[Pending] = []
        self.sent_us: list[int] = []

    @property
    def answer(self) -> WriteAnswer | None:
        """The answer to the newest try; None while there is none."""
        return write_answer(self.tries[-1]) if self.tries else None

    @property
    def is_ok(self) -> bool:
        return any(each is not None and each.is_ok for each in map(write_answer, self.tries))

    @property
    def named_leader(self) -> tuple[int, int] | None:
        """(leader, leader epoch) that the newest answer names instead of itself (KIP-951)."""
        answer = self.tries[-1].answer
        if not isinstance(answer, ProduceResponse):
            return None
        named = produce_answer(answer).current_leader
        return None if named.leader_id < 0 else (named.leader_id, named.leader_epoch)


class PartitionWriter:
    """Somebody who writes batches to one partition."""

    def __init__(
        self,
        lab: Lab,
        name: str,
        *,
        acks: int,
        identity: ProducerIdAndEpoch | None,
        first_sequence: int = 0,
    ) -> None:
        self._lab = lab
        self.name = name
        self.acks = acks
        self.identity = identity
        self.first_sequence = first_sequence
        self.next_sequence: dict[tuple[str, int], int] = {}

    @property
    def producer_id(self) -> int:
        assert self.identity is not None, f"{self.name} is not idempotent"
        return self.identity.producer_id

    def write(self, *payloads: str, index: int = 0, to: int | None = None) -> WriteAnswer:
        """Send one batch and wait for the answer."""
        return self.wait(self.begin(*payloads, index=index, to=to))

    def write_keyed(self, *payloads: str) -> WriteAnswer:
        """The same for compacted topics: the first letter of each payload is its key."""
        return self.wait(
            self._send(payloads, self._build(payloads, 0, keyed=True), index=0, to=None)
        )

    def write_bytes(self, data: bytes) -> WriteAnswer:
        """Send these bytes as a batch, whatever they are, and wait for the answer."""
        return self.wait(self._send((), data, index=0, to=None))

    def begin(self, *payloads: str, index: int = 0, to: int | None = None) -> WrittenBatch:
        """Send one batch, don't wait."""
        return self._send(payloads, self._build(payloads, index), index=index, to=to)

    def _send(
        self, payloads: tuple[str, ...], data: bytes, *, index: int, to: int | None
    ) -> WrittenBatch:
        topic = self._lab.topic
        batch = WrittenBatch(topic, index, payloads, data, acks=self.acks, writer=self.name)
        self._lab.batches.append(batch)
        self.again(batch, to=to)
        return batch

    def again(self, batch: WrittenBatch, *, to: int | None = None) -> None:
        """Send the very same bytes to the leader, or to the broker that the story names."""
        node = self._lab.leader(batch.index, topic=batch.topic) if to is None else to
        assert node is not None, "there is no leader to write to"
        request = produce_request(
            batch.topic.name,
            batch.index,
            batch.data,
            topic_id=batch.topic.topic_id,
            acks=batch.acks,
            timeout_ms=round(PRODUCE_TIMEOUT_MS / self._lab.engine.pace),
        )
        batch.sent_us.append(self._lab.engine.now_us)
        engine = self._lab.engine
        if self.acks == 0:
            engine.tell(node, request, PRODUCE_VERSION, client=self.name)
            return
        batch.tries.append(
            engine.ask(
                node,
                request,
                PRODUCE_VERSION,
                client=self.name,
                timeout_ms=PRODUCE_TIMEOUT_MS + 5_000,
            )
        )

    def wait(self, batch: WrittenBatch) -> WriteAnswer:
        self._lab.wait_for(batch.tries[-1], within_ms=PRODUCE_TIMEOUT_MS + 10_000)
        answer = batch.answer
        assert answer is not None, f"no answer to {batch.payloads}"
        return answer

    def _build(self, payloads: tuple[str, ...], index: int, *, keyed: bool = False) -> bytes:
        identity = self.identity
        key = (self._lab.topic.name, index)
        sequence = self.next_sequence.get(key, self.first_sequence)
        self.next_sequence[key] = sequence + len(payloads)
        timestamp_ms = self._lab.wall_ms()
        return bytes(
            build(
                [
                    NewRecord(
                        key=each[:1].encode() if keyed else None,
                        value=each.encode(),
                        timestamp_ms=timestamp_ms,
                    )
                    for each in payloads
                ],
                producer_id=-1 if identity is None else identity.producer_id,
                producer_epoch=-1 if identity is None else identity.producer_epoch,
                base_sequence=-1 if identity is None else sequence,
            )
        )


def write_answer(pending: Pending) -> WriteAnswer | None:
    """The answer to one try."""
    answer = pending.answer
    if answer is None:
        return None
    if isinstance(answer, MissingAnswer):
        return WriteAnswer(None, None, answer.reason)
    partition = produce_answer(answer)
    error = ErrorCode(partition.error_code)
    return WriteAnswer(error, partition.base_offset if error is ErrorCode.NONE else None)
