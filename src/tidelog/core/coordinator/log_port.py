"""The log of one partition of an internal topic, as far as its coordinator uses it."""

from __future__ import annotations

from typing import Protocol

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.exceptions import TidelogError


class CoordinatorLogUnreadable(TidelogError):
    """What the log holds cannot be read: the disk failed, or bytes are damaged."""


class CoordinatorLog(Protocol):
    """Led by this node when the coordinator began; every use asks whether it still is."""

    @property
    def log_start_offset(self) -> int: ...

    @property
    def log_end_offset(self) -> int: ...

    @property
    def high_watermark(self) -> int: ...

    @property
    def batch_bytes_max(self) -> int:
        """The largest batch that the topic takes."""

    def is_led_in(self, leader_epoch: int) -> bool:
        """Whether this node leads it, in this very leader epoch."""

    def read(self, start_offset: int, *, bytes_max: int) -> bytes:
        """Batches from the one that holds the offset on; the last one may be cut.

        Raises CoordinatorLogUnreadable.
        """

    def append(
        self,
        batch: bytearray,
        *,
        leader_epoch: int,
        wall_ms: int,
        verification: object | None = None,
        transaction_version: int = 0,
    ) -> int | ErrorCode | None:
        """The offset of its first record; None if it could not be written.

        An error code: the batch belongs to a transaction that the log refuses. The first batch of
        a transaction needs its verification, a marker has the version of its transaction.
        """
