"""What is known of one transactional id, and every step that it can take.

A step returns the next value; nothing is changed in place. The value is what a record of
`__transaction_state` holds, so a coordinator that takes over goes on from any of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from tidelog.core.model.limits import EPOCH_PER_TRANSACTION, PRODUCER_EPOCH_MAX
from tidelog.core.transactions.transaction_state import (
    PREPARED,
    TransactionStatus,
    become,
)

Partition = tuple[str, int]

NO_EPOCH: Final = -1
"""Of an id that has just been made, and of a producer that had none before."""
CLASSIC: Final = 0
"""The transaction version of clients that add every partition by themselves."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionMetadata:
    """One transactional id. Times are of the wall clock."""

    producer_id: int
    previous_producer_id: int | None = None
    next_producer_id: int | None = None
    """What the producer was given when its epochs ran out; its own once the markers are written."""
    producer_epoch: int
    last_producer_epoch: int = NO_EPOCH
    """The one before, if the present one was given to the same producer: a retry names it."""
    timeout_ms: int
    status: TransactionStatus
    partitions: frozenset[Partition] = frozenset()
    start_wall_ms: int | None = None
    update_wall_ms: int
    client_version: int = CLASSIC
    """The transaction version that the client spoke when it took the latest step."""

    @property
    def is_exhausted(self) -> bool:
        """The last epoch is kept back: whoever has it must still be fenced by a higher one."""
        return self.producer_epoch >= PRODUCER_EPOCH_MAX - 1

    @property
    def is_prepared(self) -> bool:
        return self.status in PREPARED

    def _step(
        self, status: TransactionStatus, wall_ms: int, **changes: object
    ) -> TransactionMetadata:
        values: dict[str, object] = {
            "status": become(self.status, status),
            "previous_producer_id": self.producer_id,
            "update_wall_ms": wall_ms,
            **changes,
        }
        return replace(self, **values)  # type: ignore[arg-type]

    # InitProducerId

    def with_next_epoch(
        self, *, producer_epoch: int, last_producer_epoch: int, timeout_ms: int, wall_ms: int
    ) -> TransactionMetadata:
        """A producer begins, or begins again."""
        assert producer_epoch in (self.producer_epoch, self.producer_epoch + 1)
        return self._step(
            TransactionStatus.EMPTY,
            wall_ms,
            producer_epoch=producer_epoch,
            last_producer_epoch=last_producer_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_wall_ms=None,
        )

    def with_producer_id(
        self, producer_id: int, *, last_producer_epoch: int, timeout_ms: int, wall_ms: int
    ) -> TransactionMetadata:
        """The epochs ran out: it goes on under a new producer id."""
        return self._step(
            TransactionStatus.EMPTY,
            wall_ms,
            producer_id=producer_id,
            producer_epoch=0,
            last_producer_epoch=last_producer_epoch,
            timeout_ms=timeout_ms,
            partitions=frozenset(),
            start_wall_ms=None,
        )

    # The transaction

    def with_partitions(
        self, added: frozenset[Partition], *, client_version: int, wall_ms: int
    ) -> TransactionMetadata:
        """The first partition begins the transaction."""
        is_open = self.status is TransactionStatus.ONGOING
        return self._step(
            TransactionStatus.ONGOING,
            wall_ms,
            partitions=self.partitions | added,
            start_wall_ms=self.start_wall_ms if is_open else wall_ms,
            client_version=client_version,
        )

    def prepared(
        self,
        *,
        is_commit: bool,
        client_version: int,
        next_producer_id: int | None,
        wall_ms: int,
        is_fence: bool = False,
    ) -> TransactionMetadata:
        """Decided. Under the newer version the markers already carry the next producer epoch.

        A fence (by another producer, or by the clock) raises the epoch in either version, so that
        whoever had it writes nothing more.
        """
        assert not (is_fence and is_commit)
        status = TransactionStatus.PREPARE_COMMIT if is_commit else TransactionStatus.PREPARE_ABORT
        raises_epoch = client_version >= EPOCH_PER_TRANSACTION
        producer_epoch, last_producer_epoch = self.producer_epoch, self.last_producer_epoch
        if raises_epoch or is_fence:
            last_producer_epoch = self.producer_epoch if raises_epoch else NO_EPOCH
            producer_epoch = min(self.producer_epoch + 1, PRODUCER_EPOCH_MAX)
        is_open = self.status is TransactionStatus.ONGOING
        return self._step(
            status,
            wall_ms,
            producer_epoch=producer_epoch,
            last_producer_epoch=last_producer_epoch,
            next_producer_id=next_producer_id,
            start_wall_ms=self.start_wall_ms if is_open else wall_ms,
            client_version=client_version,
        )

    def completed(self, *, wall_ms: int) -> TransactionMetadata:
        """All markers are written."""
        assert self.is_prepared, self.status
        is_commit = self.status is TransactionStatus.PREPARE_COMMIT
        producer_id, producer_epoch = self.after_completion
        return self._step(
            TransactionStatus.COMPLETE_COMMIT if is_commit else TransactionStatus.COMPLETE_ABORT,
            wall_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            next_producer_id=None,
            partitions=frozenset(),
        )

    @property
    def after_completion(self) -> tuple[int, int]:
        """Producer id and epoch with which the producer goes on."""
        raises_epoch = self.client_version >= EPOCH_PER_TRANSACTION
        if raises_epoch and self.next_producer_id is not None:
            return self.next_producer_id, 0
        return self.producer_id, self.producer_epoch

    def check(self) -> None:
        assert 0 <= self.producer_epoch <= PRODUCER_EPOCH_MAX
        if self.status is TransactionStatus.EMPTY:
            assert not self.partitions and self.start_wall_ms is None
        if self.status is TransactionStatus.ONGOING:
            assert self.partitions and self.start_wall_ms is not None
        if self.status not in PREPARED:
            assert self.next_producer_id is None


def new_transactional_id(producer_id: int, *, timeout_ms: int, wall_ms: int) -> TransactionMetadata:
    """Before its first epoch: never written as it is."""
    return TransactionMetadata(
        producer_id=producer_id,
        producer_epoch=NO_EPOCH,
        timeout_ms=timeout_ms,
        status=TransactionStatus.EMPTY,
        update_wall_ms=wall_ms,
    )
