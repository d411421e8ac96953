"""What a consumer cannot decide alone: `poll` raises it, and `seek` settles it."""

from __future__ import annotations

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.model.ids import TopicPartition


class ConsumerError(TidelogError):
    """Something a program must know about one partition."""

    def __init__(self, partition: TopicPartition, text: str) -> None:
        super().__init__(f"{partition}: {text}")
        self.partition = partition


class NoOffset(ConsumerError):
    """There is no position, and no policy to find one."""

    def __init__(self, partition: TopicPartition) -> None:
        super().__init__(partition, "no position, and auto.offset.reset is none")


class OutOfRange(ConsumerError):
    """The position is not in the log, and there is no policy to find another."""

    def __init__(self, partition: TopicPartition, offset: int) -> None:
        super().__init__(partition, f"offset {offset} is out of range")
        self.offset = offset


class LogTruncationError(ConsumerError):
    """What was read before the position is not what the log has there now (KIP-320)."""

    def __init__(
        self,
        partition: TopicPartition,
        *,
        offset: int,
        divergence: int | None,
        divergence_epoch: int | None,
    ) -> None:
        where = "at an unknown offset" if divergence is None else f"from offset {divergence} on"
        super().__init__(partition, f"position {offset}, but the log differs {where}")
        self.offset = offset
        self.divergence = divergence
        """Seek here to read what is there now."""
        self.divergence_epoch = divergence_epoch


class CorruptRecords(ConsumerError):
    """The bytes at this offset are damaged; seek past them, or wait for a repair."""

    def __init__(self, partition: TopicPartition, offset: int, reason: str) -> None:
        super().__init__(partition, f"damaged records at offset {offset}: {reason}")
        self.offset = offset


class PartitionReadRefused(ConsumerError):
    """The broker refuses to say anything about this partition."""

    def __init__(self, partition: TopicPartition, error: str) -> None:
        super().__init__(partition, error)
        self.error = error
