"""What a running pipeline tells whoever started it, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from tidelog.spark.pipeline.job.accounts import BatchReport, SinkAccount


class RunEnding(Enum):
    """How a run ended."""

    FINISHED = "finished"
    """Everything that was there has been processed."""
    STOPPED = "stopped"
    """Somebody asked; every batch that had begun is complete."""
    ABANDONED = "abandoned"
    """Somebody insisted; a batch was left, and comes again with the next run."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineWarning:
    """Something to know, that stops nothing."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStarted:
    """All queries run."""

    name: str
    sinks: tuple[str, ...]
    log: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCompleted:
    """A sink has another batch."""

    sink: str
    report: BatchReport


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkStatus:
    """A sink at this moment."""

    name: str
    is_topic: bool
    is_active: bool
    is_busy: bool
    open_s: float | None
    """How long the batch under way has been with the sink: the age of its transaction."""
    account: SinkAccount


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """Every moment, for a picture that changes."""

    sinks: tuple[SinkStatus, ...]
    is_stopping: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """The end, and the account of it."""

    ending: RunEnding
    accounts: Mapping[str, SinkAccount]
    reason: str | None = None
    """Of a failure, in one line."""
    log: str | None = None


PipelineEvent = PipelineWarning | PipelineStarted | BatchCompleted | PipelineStatus
EventListener = Callable[[PipelineEvent], None]
