"""What a sink tells its trace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedAgain:
    """A request is made again, because of this."""

    step: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkTakenOver:
    """A driver owns the sink now."""

    sink: str
    run_id: str
    producer_id: int
    producer_epoch: int
    batch_id: int | None
    """The batch that was published last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerDoubted:
    """What was read of the marker is too old to act on, so it is read again."""

    age_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchBegun:
    """A batch has a producer epoch of its own."""

    batch_id: int
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSkipped:
    """It was published before."""

    batch_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCommitted:
    """It is published now; `by_marker`: nobody said so, and the marker showed it."""

    batch_id: int
    partitions: int
    records: int
    by_marker: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAborted:
    """It is not published."""

    batch_id: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerRenewed:
    """The marker was written again, so that it does not expire."""

    batch_id: int | None
