"""One partition of one task: its batches in the order of their sequences, and what became of each.

Several may be on the wire. When one has to be sent again, nothing new leaves until all that were
on the wire are answered; then everything unacknowledged is sent again, in order, with the sequences
that it has. What was written already is answered as a repetition, with its first offset.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from tidelog.client.sink.decisions import RESENT, WAIT_MS, Decision, decide
from tidelog.client.sink.errors import BatchLost, GuardFailed
from tidelog.client.sink.guards.rising_offsets import RisingOffsets
from tidelog.client.sink.steps import Step
from tidelog.client.sink.values import Begun, Encoded, Receipt
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.limits import PRODUCER_REQUESTS_IN_FLIGHT_MAX, SEQUENCE_MODULUS


class Leaf:
    """One batch on its way."""

    __slots__ = ("base_offset", "data", "first_sent_ms", "is_in_flight", "records", "sequence")

    def __init__(self, batch: Encoded) -> None:
        self.data = batch.data
        self.records = batch.records
        self.sequence = batch.base_sequence
        self.is_in_flight = False
        self.base_offset: int | None = None
        """Known once it is acknowledged."""
        self.first_sent_ms: int | None = None


class Lane:
    """Invariant: `_leaves` have contiguous sequences that end at `next_sequence`."""

    def __init__(self, partition: TopicPartition) -> None:
        self.partition = partition
        self.next_sequence = 0
        self.offsets: RisingOffsets | None = None
        """Known once the partition's end was read; nothing is sent before."""
        self.is_added = False
        self.records = 0
        self.retry_at_ms = 0
        self.failures = 0
        self._leaves: deque[Leaf] = deque()
        self._has_to_rewind = False

    def append(self, batch: Encoded) -> None:
        if batch.base_sequence != self.next_sequence:
            raise GuardFailed(
                f"{self.partition}: a batch begins at sequence {batch.base_sequence}, and"
                f" {self.next_sequence} is next"
            )
        self._leaves.append(Leaf(batch))
        self.next_sequence = (self.next_sequence + batch.records) % SEQUENCE_MODULUS
        self.records += batch.records

    @property
    def is_empty(self) -> bool:
        return not self._leaves

    @property
    def unacknowledged_bytes(self) -> int:
        return sum(len(each.data) for each in self._leaves)

    @property
    def oldest_sent_ms(self) -> int | None:
        """When the batch that is waited for was sent first."""
        return self._leaves[0].first_sent_ms if self._leaves else None

    def take(self, now_ms: int, *, in_flight_max: int) -> Leaf | None:
        """The next batch that may leave now; it is on the wire from here on."""
        assert in_flight_max <= PRODUCER_REQUESTS_IN_FLIGHT_MAX, "Kafka remembers no more"
        if not self.is_added or self.offsets is None or now_ms < self.retry_at_ms:
            return None
        on_wire = sum(each.is_in_flight for each in self._leaves)
        if self._has_to_rewind:
            if on_wire:
                return None
            self._has_to_rewind = False
        if on_wire >= (in_flight_max if self._is_known else 1):
            return None
        leaf = next(self._waiting(), None)
        if leaf is not None:
            leaf.is_in_flight = True
            leaf.first_sent_ms = now_ms if leaf.first_sent_ms is None else leaf.first_sent_ms
        return leaf

    @property
    def _is_known(self) -> bool:
        """The partition remembers our producer, and so what comes next.

        Until then the first batch goes alone. A partition that remembers nothing takes any number:

          1. Batches 0 and 1 are sent together. 0 is refused, say for too few replicas.
          2. 1 is the first that the partition hears of this producer. It is written.
          3. 0 is sent again, and refused for good: out of order.
        """
        return self.offsets is not None and self.offsets.base_offset is not None

    def _waiting(self) -> Iterator[Leaf]:
        for leaf in self._leaves:
            if not leaf.is_in_flight and leaf.base_offset is None:
                yield leaf

    # What the leader says

    def acknowledged(self, leaf: Leaf, base_offset: int) -> None:
        leaf.is_in_flight = False
        leaf.base_offset = base_offset
        self.failures = 0
        assert self.offsets is not None
        while self._leaves and self._leaves[0].base_offset is not None:
            done = self._leaves.popleft()
            assert done.base_offset is not None
            self.offsets.accept(done.base_offset, records=done.records)

    def refused(self, leaf: Leaf, code: int, *, pause_ms: int, now_ms: int) -> Decision:
        """What the table says; if it is to be sent again, that is arranged here."""
        leaf.is_in_flight = False
        decision = decide(Step.PRODUCE, code)
        is_behind_gap = leaf is not self._leaves[0]
        if code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and is_behind_gap:
            # The batch before it did not arrive, so this one was too early: nobody's fault.
            decision = Decision.AGAIN
        if decision in RESENT:
            self._has_to_rewind = True
            wait_ms = WAIT_MS if decision == Decision.WAIT else pause_ms
            self.retry_at_ms = max(self.retry_at_ms, now_ms + wait_ms)
            self.failures += 1
        return decision

    def receipt(self, begun: Begun) -> Receipt:
        if not self.is_empty or self.offsets is None or self.offsets.base_offset is None:
            raise BatchLost(f"{self.partition}: not everything was acknowledged")
        return Receipt(
            topic=self.partition.topic,
            partition=self.partition.index,
            producer_id=begun.identity.producer_id,
            producer_epoch=begun.identity.producer_epoch,
            first_sequence=0,
            next_sequence=self.next_sequence,
            base_offset=self.offsets.base_offset,
            next_offset=self.offsets.next_offset,
            records=self.records,
        )

    def check(self) -> None:
        sequence = None
        for leaf in self._leaves:
            assert sequence in (None, leaf.sequence), (self.partition, "a gap in sequences")
            sequence = (leaf.sequence + leaf.records) % SEQUENCE_MODULUS
        assert sequence in (None, self.next_sequence), self.partition
