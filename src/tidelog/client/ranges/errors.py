"""Why a range cannot be read to its end."""

from __future__ import annotations

from enum import Enum

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.model.ids import TopicPartition


class RangeError(TidelogError):
    """What keeps a range from being read; `offset` is the first one that is missing."""

    def __init__(self, partition: TopicPartition, offset: int, text: str) -> None:
        super().__init__(f"{partition} at offset {offset}: {text}")
        self.partition = partition
        self.offset = offset


class Loss(Enum):
    """What has become of the records that were asked for."""

    DELETED = "deleted"
    """The log begins after them now."""
    BEYOND_END = "beyond the end"
    """The log ends before them: it was cut, or they were never there."""
    REPLACED = "replaced"
    """The topic was deleted, and another one has its name."""
    TRUNCATED = "truncated"
    """What was read before them is not in the log any more."""


class RangeLost(RangeError):
    """Records of the range are gone for good; the log's bounds show what is still there."""

    def __init__(
        self,
        partition: TopicPartition,
        offset: int,
        *,
        kind: Loss,
        log_start_offset: int | None = None,
        high_watermark: int | None = None,
    ) -> None:
        super().__init__(partition, offset, _text(kind, log_start_offset, high_watermark))
        self.kind = kind
        self.log_start_offset = log_start_offset
        self.high_watermark = high_watermark


class RangeRefused(RangeError):
    """A broker refuses, or its answer is no use; asking again would not help."""


class RangeStalled(RangeError):
    """Nothing new came for too long; the text says from whom, and why."""


def _text(kind: Loss, log_start_offset: int | None, high_watermark: int | None) -> str:
    there = f"the log has offsets {log_start_offset} to {high_watermark} (exclusive)"
    if kind == Loss.DELETED:
        return f"these records were deleted; {there}"
    if kind == Loss.BEYOND_END:
        return f"there are no such records; {there}"
    if kind == Loss.REPLACED:
        return "the topic was deleted and made anew under the same name"
    return f"the log was cut at offset {high_watermark}, before what had been read of it"
