"""What an audit knows of a topic before it looks at records: its fences and its rules."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedPartition:
    """The fences of one partition. What is read is [log_start_offset, end_offset)."""

    partition: int
    log_start_offset: int
    end_offset: int
    log_end_offset: int
    """Above the end: written on the leader, not committed, so not to be read yet."""
    high_watermark: int
    """Below it replicas must agree."""
    read_from: str
    """Who told what the partition holds, for people."""
    replicas: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedTopic:
    """A topic, by partition."""

    topic: str
    topic_id: str | None
    is_compacted: bool
    partitions: dict[int, AuditedPartition]
    notes: tuple[str, ...] = field(default=())
    """What a reader of the verdict should know."""

    @property
    def records_max(self) -> int:
        """No more than that are in the topic."""
        return sum(each.end_offset - each.log_start_offset for each in self.partitions.values())
