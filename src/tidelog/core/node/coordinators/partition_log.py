"""A hosted partition as the log of a coordinator."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.coordinator.log_port import CoordinatorLogUnreadable
from tidelog.core.model.errors import ErrorCode
from tidelog.core.replication.partition import Partition
from tidelog.core.storage.disk import DiskError, read_slice
from tidelog.core.storage.log import Log
from tidelog.core.storage.verification import Verification
from tidelog.core.wire.record_batch import CorruptBatch

PRODUCER_REFUSALS = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_COORDINATOR_FENCED,
    }
)
"""The log is sound: it refuses the producer's transaction."""


class PartitionLog:
    """See `CoordinatorLog`."""

    def __init__(
        self,
        partition: Partition,
        *,
        touch: Callable[[Partition], None],
        on_log_failed: Callable[[Log], None],
    ) -> None:
        self._partition = partition
        self._touch = touch
        self._on_log_failed = on_log_failed

    @property
    def log_start_offset(self) -> int:
        return self._partition.log.log_start_offset

    @property
    def log_end_offset(self) -> int:
        return self._partition.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self._partition.log.high_watermark

    @property
    def batch_bytes_max(self) -> int:
        return self._partition.log.config.message_bytes_max

    def is_led_in(self, leader_epoch: int) -> bool:
        partition = self._partition
        return partition.leadership is not None and partition.leader_epoch == leader_epoch

    def read(self, start_offset: int, *, bytes_max: int) -> bytes:
        log = self._partition.log
        try:
            found = log.read(start_offset, bytes_max=bytes_max, end_offset=log.log_end_offset)
            return b"" if found is None else read_slice(found)
        except (DiskError, CorruptBatch) as error:
            if log.failed is not None:
                self._on_log_failed(log)
            raise CoordinatorLogUnreadable(str(error)) from error

    def append(
        self,
        batch: bytearray,
        *,
        leader_epoch: int,
        wall_ms: int,
        verification: object | None = None,
        transaction_version: int = 0,
    ) -> int | ErrorCode | None:
        if not self.is_led_in(leader_epoch):
            return None
        assert verification is None or isinstance(verification, Verification)
        partition = self._partition
        appended = partition.log.append_as_leader(
            memoryview(batch),
            leader_epoch=leader_epoch,
            wall_ms=wall_ms,
            from_client=False,
            verification=verification,
            transaction_version=transaction_version,
        )
        if appended.error is ErrorCode.NONE:
            self._touch(partition)
            return appended.base_offset
        if partition.log.failed is None and appended.error in PRODUCER_REFUSALS:
            return appended.error
        self._on_log_failed(partition.log)
        return None
