"""The events of a running pipeline, as values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

from tidelog.spark.pipeline.job.accounts import BatchReport, SinkAccount


class RunEnding(Enum):
    """How a run ended."""

    FINISHED = "finished"
    """All available records have been processed."""
    STOPPED = "stopped"
    """A stop was requested; every batch that had begun is complete."""
    ABANDONED = "abandoned"
    """The stop was forced; an unfinished batch is repeated by the next run."""
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineWarning:
    """A warning; the run continues."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStarted:
    """All queries run."""

    name: str
    sinks: tuple[str, ...]
    log: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCompleted:
    """A sink has completed a batch."""

    sink: str
    report: BatchReport


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkStatus:
    """The state of a sink at this moment."""

    name: str
    is_topic: bool
    is_active: bool
    is_busy: bool
    open_s: float | None
    """How long the batch under way has been with the sink: the age of its transaction."""
    account: SinkAccount


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineStatus:
    """The state of all sinks, twice a second, for a live display."""

    sinks: tuple[SinkStatus, ...]
    is_stopping: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How the run ended, with the accounts of its sinks."""

    ending: RunEnding
    accounts: Mapping[str, SinkAccount]
    reason: str | None = None
    """The reason of a failure, in one line."""
    log: str | None = None


PipelineEvent = PipelineWarning | PipelineStarted | BatchCompleted | PipelineStatus
EventListener = Callable[[PipelineEvent], None]
