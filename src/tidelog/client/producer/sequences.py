"""Sequence numbers: how an idempotent producer makes its retries recognisable, and its gaps heal.

Batches of a partition are numbered in the order in which they first leave. A retry has the number
it had. When a batch is given up for good and nobody knows whether it was written, nothing new
leaves for its partition until the batches behind it are settled; then, if there is a gap, the
producer takes the next producer epoch, in which every partition begins again at 0 (KIP-360).
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tidelog.client.producer.batch import BatchSequence, ProducerBatch
from tidelog.core.model.errors import RETRIABLE, ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition
from tidelog.core.model.limits import (
    INT16_MAX,
    PRODUCER_REQUESTS_IN_FLIGHT_MAX,
    SEQUENCE_MODULUS,
)

FATAL = frozenset(
    {
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.UNSUPPORTED_VERSION,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    }
)
"""After one of these no record will ever be taken under this identity."""


def sequence_after(sequence: int, count: int) -> int:
    """The sequence number `count` records later."""
    return (sequence + count) % SEQUENCE_MODULUS


@dataclass(slots=True)
class _Partition:
    """One partition's numbers. `in_flight` are numbered batches without an outcome, in order."""

    identity: ProducerIdAndEpoch | None = None
    next_sequence: int = 0
    acked_end: int = 0
    """The sequence after the last one that is acknowledged."""
    unresolved_end: int | None = None
    """The sequence after a batch that was given up without knowing whether it is written."""
    in_flight: list[ProducerBatch] = field(default_factory=list)


class Sequences:
    """One producer's identity and numbers.

    In a transaction nothing heals by itself: a gap fails its batch, and with it the transaction.
    """

    def __init__(self, *, is_transactional: bool = False) -> None:
        self._is_transactional = is_transactional
        self.identity: ProducerIdAndEpoch | None = None
        self.fatal: tuple[str, str] | None = None
        """The error and reason after which nothing is sent any more."""
        self._partitions: dict[TopicPartition, _Partition] = {}
        self._to_restart: dict[TopicPartition, None] = {}

    def in_flight(self, partition: TopicPartition) -> list[ProducerBatch]:
        return self._of(partition).in_flight

    def _of(self, partition: TopicPartition) -> _Partition:
        return self._partitions.setdefault(partition, _Partition())

    # Leaving

    def may_leave(self, batch: ProducerBatch) -> bool:
        """Whether this batch, the first of its queue, may go on the wire now."""
        known = self._of(batch.partition)
        if self.identity is None:
            return False
        if batch.numbered is not None:
            # One at a time while something is retried, and in order.
            return not known.in_flight or known.in_flight[0] is batch
        if known.unresolved_end is not None:
            return False
        if known.in_flight and known.identity != self.identity:
            return False
        return len(known.in_flight) < PRODUCER_REQUESTS_IN_FLIGHT_MAX

    def leave(self, batch: ProducerBatch) -> None:
        """Number the batch, unless it has a number already."""
        assert self.identity is not None
        if batch.numbered is not None:
            return
        known = self._of(batch.partition)
        if known.identity != self.identity:
            self._restart(known)
        batch.is_transactional = self._is_transactional
        batch.number(BatchSequence(self.identity, known.next_sequence))
        known.next_sequence = sequence_after(known.next_sequence, batch.count)
        known.in_flight.append(batch)

    # Coming back

    def completed(self, batch: ProducerBatch) -> None:
        known = self._of(batch.partition)
        assert batch.numbered is not None
        end = sequence_after(batch.numbered.base_sequence, batch.count)
        if (end - known.acked_end) % SEQUENCE_MODULUS < SEQUENCE_MODULUS // 2:
            known.acked_end = end
        self._settle(known, batch)

    def may_retry(
        self, batch: ProducerBatch, error: ErrorCode, *, log_start_known: bool = True
    ) -> bool:
        """Whether the same batch may be sent again; asks for a new producer epoch if it must."""
        if self._is_transactional:
            return self._may_retry_in_transaction(batch, error, log_start_known=log_start_known)
        if error == ErrorCode.UNKNOWN_PRODUCER_ID:
            if log_start_known and not batch.was_renumbered:
                self._to_restart[batch.partition] = None
            return True
        if error != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return error in RETRIABLE
        known = self._of(batch.partition)
        assert batch.numbered is not None
        base_sequence = batch.numbered.base_sequence
        if known.unresolved_end is None:
            # Not the next one: it was overtaken, and fits once those before it are written.
            is_gap = not batch.was_renumbered and base_sequence == known.acked_end
        else:
            is_gap = base_sequence == known.unresolved_end
        if is_gap:
            self._to_restart[batch.partition] = None
        return True

    def _may_retry_in_transaction(
        self, batch: ProducerBatch, error: ErrorCode, *, log_start_known: bool
    ) -> bool:
        if error == ErrorCode.UNKNOWN_PRODUCER_ID:
            return not log_start_known
        if error != ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
            return error in RETRIABLE
        known = self._of(batch.partition)
        assert batch.numbered is not None
        # It was overtaken, and fits once those before it are written.
        return known.unresolved_end is None and batch.numbered.base_sequence != known.acked_end

    def failed(self, batch: ProducerBatch, error: ErrorCode, reason: str) -> None:
        """It was refused and will not be sent again.

        Those behind it are not numbered anew at once, as Java does, although it leaves a gap:

          1. The first batch of a producer is refused: too large. The second is on the wire.
          2. A leader that does not know the producer accepts any first sequence: it is written.
          3. Its answer is lost. The retry under a new number would be a second copy.

        Whether there is a gap is for the leader to say (45), or for the last of them to show.
        """
        if error in FATAL and self.fatal is None and not self._is_transactional:
            self.fatal = (error.name, reason)
        self.given_up(batch)

    def given_up(self, batch: ProducerBatch) -> None:
        """No more time or retries for it: perhaps it is written, perhaps it leaves a gap."""
        if batch.numbered is None:
            return
        known = self._of(batch.partition)
        self._settle(known, batch)
        known.unresolved_end = sequence_after(batch.numbered.base_sequence, batch.count)

    def split(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """Parts share the numbers of their whole."""
        assert batch.numbered is not None
        known = self._of(batch.partition)
        sequence = batch.numbered.base_sequence
        for part in parts:
            part.number(BatchSequence(batch.numbered.identity, sequence))
            sequence = sequence_after(sequence, part.count)
        index = known.in_flight.index(batch)
        known.in_flight[index : index + 1] = parts

    def _settle(self, known: _Partition, batch: ProducerBatch) -> None:
        known.in_flight = [each for each in known.in_flight if each is not batch]

    # Gaps

    def heal(self) -> tuple[TopicPartition, ...]:
        """Resolve what can be resolved; the partitions for which a new producer epoch began."""
        for partition, known in self._partitions.items():
            if known.unresolved_end is not None and not known.in_flight:
                known.unresolved_end = None
                if known.acked_end != known.next_sequence:
                    self._to_restart[partition] = None
        if not self._to_restart or self.identity is None:
            return ()
        if self.identity.producer_epoch == INT16_MAX:
            self.identity = None
            return ()
        return self.identify(
            self.identity._replace(producer_epoch=self.identity.producer_epoch + 1)
        )

    def identify(self, identity: ProducerIdAndEpoch) -> tuple[TopicPartition, ...]:
        """From now on under this identity; partitions with a gap begin again."""
        self.identity = identity
        restarted = tuple(self._to_restart)
        self._to_restart.clear()
        for partition in restarted:
            self._restart(self._of(partition))
        return restarted

    def restart_all(self, identity: ProducerIdAndEpoch) -> None:
        """Under a new identity of a transactional producer, when every batch has its outcome."""
        assert not any(known.in_flight for known in self._partitions.values())
        self.identity = identity
        self._partitions.clear()

    def _restart(self, known: _Partition) -> None:
        """Begin at 0 under the current identity, with whatever has not been settled."""
        assert self.identity is not None
        known.identity = self.identity
        known.next_sequence = known.acked_end = 0
        known.unresolved_end = None
        for batch in known.in_flight:
            batch.number(BatchSequence(self.identity, known.next_sequence), again=True)
            known.next_sequence = sequence_after(known.next_sequence, batch.count)

    def check(self) -> None:
        for partition, known in self._partitions.items():
            sequence = known.next_sequence
            for batch in reversed(known.in_flight):
                assert batch.numbered is not None and not batch.is_done, partition
                assert batch.numbered.identity == known.identity, partition
            if known.in_flight and known.unresolved_end is None:
                last = known.in_flight[-1]
                assert last.numbered is not None
                assert sequence_after(last.numbered.base_sequence, last.count) == sequence
