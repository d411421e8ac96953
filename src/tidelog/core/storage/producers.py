"""What a log remembers of its producers, so that a retry is recognised and a gap is refused.

Deciding is pure and looks at a batch's header; applying changes the state and is the same for a
leader, a follower and a replay after a restart. A producer is remembered until it has been idle
for `producer.id.expiration.ms`, longer if a transaction of it is open; records that retention
deletes do not make the log forget it, a truncation does (the state is rebuilt).
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.limits import (
    DEDUP_BATCHES,
    EPOCH_PER_TRANSACTION,
    PRODUCER_EPOCH_MAX,
    SEQUENCE_MODULUS,
)
from tidelog.core.storage.verification import NOT_REQUIRED, Verification
from tidelog.core.wire.control_records import EndTransactionMarker
from tidelog.core.wire.record_batch import CONTROL_BIT, TRANSACTIONAL_BIT, BatchHeader


def sequence_after(sequence: int, count: int) -> int:
    """The sequence number `count` records later: after 2**31 - 1 comes 0."""
    assert 0 <= sequence < SEQUENCE_MODULUS and count >= 0, (sequence, count)
    return (sequence + count) % SEQUENCE_MODULUS


def sequence_before(sequence: int, count: int) -> int:
    """The sequence number `count` records earlier."""
    assert 0 <= sequence < SEQUENCE_MODULUS and count >= 0, (sequence, count)
    return (sequence - count) % SEQUENCE_MODULUS


class RememberedBatch(NamedTuple):
    """One of the latest batches of a producer."""

    first_sequence: int
    next_sequence: int
    """The sequence that the following batch must begin with."""
    base_offset: int
    end_offset: int
    timestamp_ms: int


class AbortedTransaction(NamedTuple):
    """Records of `producer_id` in [first_offset, end_offset) are not to be read as committed."""

    producer_id: int
    first_offset: int
    end_offset: int
    """One past the marker."""
    last_stable_offset: int
    """Where the last stable offset could go once this transaction was over."""


class ProducerStateEntry:
    """One producer id on this partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "producer_epoch",
        "producer_id",
        "timestamp_ms",
        "transaction_first_offset",
    )

    def __init__(self, producer_id: int, producer_epoch: int) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.batches: list[RememberedBatch] = []
        """Of the current producer epoch, oldest first, at most five."""
        self.timestamp_ms = -1
        """Of the latest write, as the batch said."""
        self.coordinator_epoch: int | None = None
        self.transaction_first_offset: int | None = None

    def adopt_epoch(self, producer_epoch: int) -> None:
        if producer_epoch != self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.batches = []

    def remember(self, batch: RememberedBatch) -> None:
        if len(self.batches) == DEDUP_BATCHES:
            del self.batches[0]
        self.batches.append(batch)
        self.timestamp_ms = batch.timestamp_ms

    @property
    def expected_sequence(self) -> int:
        """A producer epoch without any batch (a marker began it) starts at 0."""
        return self.batches[-1].next_sequence if self.batches else 0


class ProducerStates:
    """All producers of one partition and its transactions that are not over for readers.

    Invariant: `_open` and `_unreplicated` are sorted by first offset.
    """

    __slots__ = ("_open", "_unreplicated", "by_id", "verifications")

    def __init__(self) -> None:
        self.by_id: dict[int, ProducerStateEntry] = {}
        self.verifications: dict[int, Verification] = {}
        """By producer id; of leaders only, in memory only."""
        self._open: dict[int, int] = {}
        """Transactions without a marker: first offset -> producer id."""
        self._unreplicated: dict[int, int] = {}
        """Transactions whose marker is above the high watermark: first offset -> their end."""

    # Verification.

    def has_transaction(self, producer_id: int, producer_epoch: int) -> bool:
        """Whether a transaction of the producer in this epoch has written here and is open."""
        producer = self.by_id.get(producer_id)
        return (
            producer is not None
            and producer.producer_epoch == producer_epoch
            and producer.transaction_first_offset is not None
        )

    def begin_verification(
        self,
        producer_id: int,
        producer_epoch: int,
        sequence: int,
        *,
        adds_partition: bool,
        wall_ms: int,
    ) -> Verification | None:
        """Before the first append of a transaction; None: it is open here, no need to ask."""
        if self.has_transaction(producer_id, producer_epoch):
            return None
        known = self.verifications.get(producer_id)
        if known is None:
            known = self.verifications[producer_id] = Verification(
                producer_epoch, sequence, adds_partition=adds_partition, start_wall_ms=wall_ms
            )
        else:
            known.repeat(producer_epoch, sequence)
        return known

    def _refuse_unverified(
        self, header: BatchHeader, verification: Verification | None
    ) -> ErrorCode | None:
        """A transactional batch is the first of its transaction here: was it verified?"""
        producer_id = header.producer_id
        if verification is NOT_REQUIRED or self.has_transaction(producer_id, header.producer_epoch):
            return None
        producer = self.by_id.get(producer_id)
        if producer is not None and header.producer_epoch < producer.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if verification is None or self.verifications.get(producer_id) is not verification:
            return ErrorCode.INVALID_TXN_STATE
        if header.base_sequence < 0:  # a coordinator's
            return None
        is_unknown = producer is None or not producer.batches
        if verification.adds_partition and header.base_sequence != 0 and is_unknown:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        if header.base_sequence > verification.lowest_sequence:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return None

    # Deciding.

    def decide_first(
        self, header: BatchHeader, verification: Verification | None
    ) -> ErrorCode | RememberedBatch | None:
        """The same for a transactional batch, which may be the first of its transaction here."""
        verdict = self.decide(header)
        if isinstance(verdict, RememberedBatch):
            return verdict
        return self._refuse_unverified(header, verification) or verdict

    def decide(self, header: BatchHeader) -> ErrorCode | RememberedBatch | None:
        """None: append it. A batch: it is a retry of that one. Otherwise the refusal."""
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            return None
        producer_epoch, sequence = header.producer_epoch, header.base_sequence
        if producer_epoch == producer.producer_epoch:
            if producer.batches and sequence == producer.batches[-1].next_sequence:
                return self._decide_transaction(producer, header)
            next_sequence = (sequence + header.last_offset_delta + 1) % SEQUENCE_MODULUS
            for batch in producer.batches:
                if batch.first_sequence == sequence and batch.next_sequence == next_sequence:
                    return batch
            if sequence != producer.expected_sequence:
                return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        elif producer_epoch < producer.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        elif sequence != 0:
            return ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        return self._decide_transaction(producer, header)

    def decide_from_coordinator(
        self,
        header: BatchHeader,
        marker: EndTransactionMarker | None,
        *,
        verification: Verification | None = NOT_REQUIRED,
        transaction_version: int = 0,
    ) -> ErrorCode | None:
        """Brokers' own writes carry no sequences; only epochs are compared."""
        producer = self.by_id.get(header.producer_id)
        if marker is None and header.attributes & TRANSACTIONAL_BIT:
            refusal = self._refuse_unverified(header, verification)
            if refusal is not None:
                return refusal
        if producer is None:
            return None
        if header.producer_epoch < producer.producer_epoch:
            return ErrorCode.INVALID_PRODUCER_EPOCH
        if marker is None:
            return self._decide_transaction(producer, header)
        if (
            transaction_version >= EPOCH_PER_TRANSACTION
            and header.producer_epoch == producer.producer_epoch
            and producer.transaction_first_offset is not None
            and header.producer_epoch < PRODUCER_EPOCH_MAX
        ):
            # Each transaction has an epoch of its own, and its marker the next one: this marker
            # ended the transaction before, and would end the open one with it.
            return ErrorCode.INVALID_PRODUCER_EPOCH
        known = producer.coordinator_epoch
        if known is not None and marker.coordinator_epoch < known:
            return ErrorCode.TRANSACTION_COORDINATOR_FENCED
        return None

    def _decide_transaction(
        self, producer: ProducerStateEntry, header: BatchHeader
    ) -> ErrorCode | None:
        is_open = producer.transaction_first_offset is not None
        if is_open and not header.attributes & TRANSACTIONAL_BIT:
            return ErrorCode.INVALID_TXN_STATE
        return None

    # Applying.

    def apply(
        self, header: BatchHeader, *, base_offset: int, marker: EndTransactionMarker | None = None
    ) -> AbortedTransaction | None:
        """A batch of a producer is in the log at `base_offset`; an aborted transaction if any."""
        producer = self.by_id.get(header.producer_id)
        if producer is None:
            producer = ProducerStateEntry(header.producer_id, header.producer_epoch)
            self.by_id[header.producer_id] = producer
        if header.attributes & CONTROL_BIT:
            if marker is None:
                return None
            return self._apply_marker(producer, header, base_offset, marker)
        producer.adopt_epoch(header.producer_epoch)
        if self.verifications:
            self.verifications.pop(header.producer_id, None)
        count = header.last_offset_delta + 1
        sequence = header.base_sequence
        next_sequence = (sequence + count) % SEQUENCE_MODULUS if sequence >= 0 else 0
        end_offset = base_offset + count
        producer.remember(
            RememberedBatch(
                sequence, next_sequence, base_offset, end_offset, header.max_timestamp_ms
            )
        )
        if header.attributes & TRANSACTIONAL_BIT and producer.transaction_first_offset is None:
            producer.transaction_first_offset = base_offset
            self._open[base_offset] = header.producer_id
        return None

    def _apply_marker(
        self,
        producer: ProducerStateEntry,
        header: BatchHeader,
        base_offset: int,
        marker: EndTransactionMarker,
    ) -> AbortedTransaction | None:
        first_offset = producer.transaction_first_offset
        verification = self.verifications.get(header.producer_id)
        if verification is not None and verification.is_ended_by(header.producer_epoch):
            del self.verifications[header.producer_id]
        producer.adopt_epoch(header.producer_epoch)
        producer.coordinator_epoch = marker.coordinator_epoch
        producer.transaction_first_offset = None
        producer.timestamp_ms = header.max_timestamp_ms
        if first_offset is None:
            return None
        end_offset = base_offset + 1
        del self._open[first_offset]
        self._unreplicated[first_offset] = end_offset
        self._unreplicated = dict(sorted(self._unreplicated.items()))
        if marker.commit:
            return None
        stable = next(iter(self._open), end_offset)
        return AbortedTransaction(header.producer_id, first_offset, end_offset, stable)

    # Fences.

    @property
    def first_unstable_offset(self) -> int | None:
        """Where the first transaction begins that is not decided, or not known to all replicas."""
        if not self._open and not self._unreplicated:
            return None
        firsts = [next(iter(known)) for known in (self._open, self._unreplicated) if known]
        return min(firsts)

    def on_high_watermark(self, high_watermark: int) -> None:
        """Markers below it are everywhere: their transactions are over for readers."""
        if self._unreplicated:
            for first_offset, end_offset in list(self._unreplicated.items()):
                if end_offset <= high_watermark:
                    del self._unreplicated[first_offset]

    def expire(self, *, wall_ms: int, expiration_ms: int) -> int:
        """Forget producers that have been idle for so long; how many there were.

        Records without timestamps do not say when they came. Taking that for the year 1970 would
        forget their producer at every restart, and the retry that follows one would be stored
        twice; so the idle time of such a producer begins with the first check.
        """
        for producer in self.by_id.values():
            if producer.timestamp_ms < 0:
                producer.timestamp_ms = wall_ms
        idle = [
            producer_id
            for producer_id, producer in self.by_id.items()
            if is_expired(producer, wall_ms=wall_ms, expiration_ms=expiration_ms)
        ]
        for producer_id in idle:
            del self.by_id[producer_id]
        for producer_id, verification in list(self.verifications.items()):
            if wall_ms - verification.start_wall_ms >= expiration_ms:
                del self.verifications[producer_id]
        return len(idle)

    def load(self, producers: Iterable[ProducerStateEntry]) -> None:
        """Begin with what a snapshot says."""
        assert not self.by_id and not self._open and not self._unreplicated
        for producer in producers:
            self.by_id[producer.producer_id] = producer
        self._open = {
            producer.transaction_first_offset: producer.producer_id
            for producer in sorted(
                self.by_id.values(), key=lambda one: one.transaction_first_offset or 0
            )
            if producer.transaction_first_offset is not None
        }

    def check(self) -> None:
        for producer_id, producer in self.by_id.items():
            assert producer.producer_id == producer_id
            assert len(producer.batches) <= DEDUP_BATCHES
            for before, after in pairwise(producer.batches):
                assert before.end_offset <= after.base_offset, producer_id
            if producer.transaction_first_offset is not None:
                assert self._open[producer.transaction_first_offset] == producer_id
        for known in (self._open, self._unreplicated):
            assert list(known) == sorted(known)


def is_expired(producer: ProducerStateEntry, *, wall_ms: int, expiration_ms: int) -> bool:
    return (
        producer.transaction_first_offset is None
        and wall_ms - producer.timestamp_ms >= expiration_ms
    )
