"""The question to a coordinator before the first append of a transaction to a partition."""

from __future__ import annotations


class Verification:
    """The coordinator is asked whether a producer's transaction includes this partition.

    It is good for one first append: whatever is written meanwhile for the same producer, data or
    a marker, ends it. So an answer that comes after the transaction's end opens nothing.
    """

    __slots__ = ("adds_partition", "lowest_sequence", "producer_epoch", "start_wall_ms")

    def __init__(
        self, producer_epoch: int, sequence: int, *, adds_partition: bool, start_wall_ms: int
    ) -> None:
        self.producer_epoch = producer_epoch
        self.lowest_sequence = sequence
        """A later batch may not be written before the one that failed to be verified."""
        self.adds_partition = adds_partition
        """The question itself makes the partition part of the transaction (Produce 12 and later):
        a producer that is not known here begins with sequence 0."""
        self.start_wall_ms = start_wall_ms

    def is_ended_by(self, marker_epoch: int) -> bool:
        """Whether a marker with this producer epoch ends the transaction that is verified.

        Where each transaction has an epoch of its own, a marker has the epoch *after* that of its
        transaction. The producer may have begun the next one already, while the marker of the one
        before was on its way. In the older protocol all have the same epoch, and the next one
        begins after the markers.
        """
        return not self.adds_partition or self.producer_epoch < marker_epoch

    def repeat(self, producer_epoch: int, sequence: int) -> None:
        """The same producer asks again before the answer was used."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch, self.lowest_sequence = producer_epoch, sequence
        elif producer_epoch == self.producer_epoch:
            self.lowest_sequence = min(self.lowest_sequence, sequence)


NOT_REQUIRED = Verification(-1, -1, adds_partition=False, start_wall_ms=0)
"""Instead of a verification: `transaction.partition.verification.enable` is off."""
