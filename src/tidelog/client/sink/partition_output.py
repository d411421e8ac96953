"""One partition of one task: its batches in the order of their sequences, and what became of each.

Several may be on the wire. When one has to be sent again, nothing new leaves until all that were
on the wire are answered; then everything unacknowledged is sent again, in order, with the sequences
that it has. What was written already is answered as a repetition, with its first offset. A
`SinkProduceCall` is one Produce request with batches for one leader.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from tidelog.client.client import Client
from tidelog.client.sink.decisions import RESENT, WAIT_MS, ErrorDecision, decide
from tidelog.client.sink.errors import BatchLost, GuardFailed
from tidelog.client.sink.guards import RisingOffsets
from tidelog.client.sink.requests import STEP_APIS, SinkStep
from tidelog.client.sink.values import BatchTicket, EncodedRecordBatch, Receipt
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.limits import PRODUCER_REQUESTS_IN_FLIGHT_MAX, SEQUENCE_MODULUS
from tidelog.core.wire.links import NoAnswer
from tidelog.core.wire.messages.api_00_produce import (
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from tidelog.core.wire.schema import Message
from tidelog.core.wire.sentinels import ACKS_ALL


class PendingBatch:
    """One batch on its way."""

    __slots__ = ("base_offset", "data", "first_sent_ms", "is_in_flight", "records", "sequence")

    def __init__(self, batch: EncodedRecordBatch) -> None:
        self.data = batch.data
        self.records = batch.records
        self.sequence = batch.base_sequence
        self.is_in_flight = False
        self.base_offset: int | None = None
        """Known once it is acknowledged."""
        self.first_sent_ms: int | None = None


class PartitionOutput:
    """Invariant: `_batches` have contiguous sequences that end at `next_sequence`."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.next_sequence = 0
        self.offsets: RisingOffsets | None = None
        """Known once the partition's end was read; nothing is sent before."""
        self.is_added = False
        self.records = 0
        self.retry_at_ms = 0
        self.failures = 0
        self._batches: deque[PendingBatch] = deque()
        self._has_to_rewind = False

    def append(self, batch: EncodedRecordBatch) -> None:
        if batch.base_sequence != self.next_sequence:
            raise GuardFailed(
                f"{self.partition}: a batch begins at sequence {batch.base_sequence}, and"
                f" {self.next_sequence} is next"
            )
        self._batches.append(PendingBatch(batch))
        self.next_sequence = (self.next_sequence + batch.records) % SEQUENCE_MODULUS
        self.records += batch.records

    @property
    def is_empty(self) -> bool:
        return not self._batches

    @property
    def unacknowledged_bytes(self) -> int:
        return sum(len(each.data) for each in self._batches)

    @property
    def oldest_sent_ms(self) -> int | None:
        """When the batch that is waited for was sent first."""
        return self._batches[0].first_sent_ms if self._batches else None

    def take(self, now_ms: int, *, in_flight_max: int) -> PendingBatch | None:
        """The next batch that may leave now; it is on the wire from here on."""
        assert in_flight_max <= PRODUCER_REQUESTS_IN_FLIGHT_MAX, "Kafka remembers no more"
        if not self.is_added or self.offsets is None or now_ms < self.retry_at_ms:
            return None
        on_wire = sum(each.is_in_flight for each in self._batches)
        if self._has_to_rewind:
            if on_wire:
                return None
            self._has_to_rewind = False
        if on_wire >= (in_flight_max if self._is_known else 1):
            return None
        batch = next(self._waiting(), None)
        if batch is not None:
            batch.is_in_flight = True
            batch.first_sent_ms = now_ms if batch.first_sent_ms is None else batch.first_sent_ms
        return batch

    @property
    def _is_known(self) -> bool:
        """The partition remembers our producer, and so what comes next.

        Until then the first batch goes alone. A partition that remembers nothing takes any number:

          1. Batches 0 and 1 are sent together. 0 is refused, say for too few replicas.
          2. 1 is the first that the partition hears of this producer. It is written.
          3. 0 is sent again, and refused for good: out of order.
        """
        return self.offsets is not None and self.offsets.base_offset is not None

    def _waiting(self) -> Iterator[PendingBatch]:
        for batch in self._batches:
            if not batch.is_in_flight and batch.base_offset is None:
                yield batch

    # What the leader answers

    def acknowledged(self, batch: PendingBatch, base_offset: int) -> None:
        batch.is_in_flight = False
        batch.base_offset = base_offset
        self.failures = 0
        assert self.offsets is not None
        while self._batches and self._batches[0].base_offset is not None:
            done = self._batches.popleft()
            assert done.base_offset is not None
            self.offsets.accept(done.base_offset, records=done.records)

    def refused(
        self, batch: PendingBatch, code: int, *, pause_ms: int, now_ms: int
    ) -> ErrorDecision:
        """The decision about a refused batch; if it is to be sent again, that is arranged here."""
        batch.is_in_flight = False
        decision = decide(SinkStep.PRODUCE, code)
        is_behind_gap = batch is not self._batches[0]
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and is_behind_gap:
            # The batch before it did not arrive, so this one was too early: no second writer.
            decision = ErrorDecision.AGAIN
        if decision in RESENT:
            self._has_to_rewind = True
            wait_ms = WAIT_MS if decision == ErrorDecision.WAIT else pause_ms
            self.retry_at_ms = max(self.retry_at_ms, now_ms + wait_ms)
            self.failures += 1
        return decision

    def receipt(self, ticket: BatchTicket) -> Receipt:
        if not self.is_empty or self.offsets is None or self.offsets.base_offset is None:
            raise BatchLost(f"{self.partition}: not everything was acknowledged")
        return Receipt(
            topic=self.partition.topic,
            partition=self.partition.index,
            producer_id=ticket.identity.producer_id,
            producer_epoch=ticket.identity.producer_epoch,
            first_sequence=0,
            next_sequence=self.next_sequence,
            base_offset=self.offsets.base_offset,
            next_offset=self.offsets.next_offset,
            records=self.records,
        )

    def check(self) -> None:
        sequence = None
        for batch in self._batches:
            assert sequence in (None, batch.sequence), (self.partition, "a gap in sequences")
            sequence = (batch.sequence + batch.records) % SEQUENCE_MODULUS
        assert sequence in (None, self.next_sequence), self.partition


class OutputBatch(NamedTuple):
    """A batch and the partition that it is for."""

    output: PartitionOutput
    batch: PendingBatch


class ProduceResult(NamedTuple):
    """What became of one batch: an offset, or a code."""

    code: int
    reason: str = ""
    base_offset: int | None = None
    leader: tuple[int, int] | None = None


OnProduceResults = Callable[
    [list[tuple[OutputBatch, ProduceResult]], list[NodeEndpoint], int], None
]


class SinkProduceCall:
    """Sent once; every batch gets a result, whatever happens."""

    def __init__(
        self, client: Client, node: int, transactional_id: str, batches: Sequence[OutputBatch]
    ) -> None:
        self._client = client
        self._node = node
        self._batches = batches
        topics: dict[str, TopicProduceData] = {}
        for output, batch in batches:
            name = output.partition.topic
            topic = topics.setdefault(name, TopicProduceData(name=name))
            topic.partition_data.append(
                PartitionProduceData(index=output.partition.index, records=memoryview(batch.data))
            )
        self._request = ProduceRequest(
            transactional_id=transactional_id,
            acks=ACKS_ALL,
            timeout_ms=client.config.request_timeout_ms,
            topic_data=list(topics.values()),
        )

    def send(self, then: OnProduceResults, now_ms: int) -> None:
        api = STEP_APIS[SinkStep.PRODUCE]
        connections = self._client.connections
        version = connections.version(self._node, ProduceRequest, at_most=api.version_max)
        if version is None or version < api.version_min:
            then(self._all(ProduceResult(ErrorCode.UNSUPPORTED_VERSION)), [], now_ms)
            return

        def on_answer(answer: Message | NoAnswer, now_ms: int) -> None:
            if isinstance(answer, NoAnswer):
                timed_out = answer.reason == "timed out"
                code = ErrorCode.REQUEST_TIMED_OUT if timed_out else ErrorCode.NETWORK_EXCEPTION
                then(self._all(ProduceResult(code, f"no answer ({answer.reason})")), [], now_ms)
                return
            assert isinstance(answer, ProduceResponse)
            then(self._read(answer), answer.node_endpoints, now_ms)

        connections.send(self._node, self._request, version, on_answer, now_ms=now_ms)

    def _all(self, result: ProduceResult) -> list[tuple[OutputBatch, ProduceResult]]:
        return [(each, result) for each in self._batches]

    def _read(self, answer: ProduceResponse) -> list[tuple[OutputBatch, ProduceResult]]:
        results = {
            TopicPartition(topic.name, each.index): _result(each)
            for topic in answer.responses
            for each in topic.partition_responses
        }
        missing = ProduceResult(ErrorCode.UNKNOWN_SERVER_ERROR, "left out of the answer")
        return [(each, results.get(each.output.partition, missing)) for each in self._batches]


def _result(partition: PartitionProduceResponse) -> ProduceResult:
    leader = partition.current_leader
    return ProduceResult(
        code=partition.error_code,
        reason=partition.error_message or "",
        base_offset=partition.base_offset if partition.error_code == ErrorCode.NONE else None,
        leader=None if leader.leader_id < 0 else (leader.leader_id, leader.leader_epoch),
    )
