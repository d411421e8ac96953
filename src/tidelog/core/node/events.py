"""What a node writes to its trace about itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStarted:
    """Every log is open and the metadata replayed: the node serves."""

    node_id: int
    topics: int
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStopped:
    """Stopped cleanly: the next start need not look at a single batch."""

    node_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirectoryFailed:
    """A log directory is given up for good; its partitions answer KAFKA_STORAGE_ERROR."""

    directory: str
    reason: str
    partitions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeHalted:
    """Nothing more can be promised: the process must end."""

    node_id: int
    reason: str
