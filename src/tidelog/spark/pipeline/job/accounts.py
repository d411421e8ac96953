"""What became of every record, from Spark's progress reports: pure sums that must match.

Of a source:                read    = parsed + dead
Of a view that deduplicates: arrived = kept + duplicates + late
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

DEDUPLICATING = ("dedupeWithinWatermark", "dedupe")
"""Spark's names for the operators whose dropped rows are records."""


@dataclass(slots=True)
class SourceAccount:
    """Of one source, as one sink's query read it."""

    read: int = 0
    dead: int = 0

    @property
    def parsed(self) -> int:
        return self.read - self.dead


@dataclass(slots=True)
class ViewAccount:
    """Of one view that deduplicates."""

    arrived: int = 0
    kept: int = 0

    @property
    def dropped(self) -> int:
        """Duplicates, and those that came too late."""
        return self.arrived - self.kept


@dataclass(slots=True)
class SinkAccount:
    """Everything that one sink's query did in this run."""

    batches: int = 0
    rows: int = 0
    """Rows that went into the sink, or were already there from a run that died."""
    duplicates: int = 0
    late: int = 0
    late_groups: int = 0
    """Groups of an aggregation that came after they were written."""
    sources: dict[str, SourceAccount] = field(default_factory=dict)
    views: dict[str, ViewAccount] = field(default_factory=dict)
    last: BatchReport | None = None

    def add(self, report: BatchReport) -> None:
        self.batches += 1
        self.rows += report.rows
        self.duplicates += report.duplicates
        self.late += report.late
        self.late_groups += report.late_groups
        for name, (read, dead) in report.sources.items():
            source = self.sources.setdefault(name, SourceAccount())
            source.read += read
            source.dead += dead
        for name, (arrived, kept) in report.views.items():
            view = self.views.setdefault(name, ViewAccount())
            view.arrived += arrived
            view.kept += kept
        self.last = report

    @property
    def read(self) -> int:
        return sum(each.read for each in self.sources.values())

    @property
    def dead(self) -> int:
        return sum(each.dead for each in self.sources.values())

    def imbalance(self) -> str | None:
        """A sentence if the sums do not match: our mistake, or tasks that ran twice."""
        dropped = sum(each.dropped for each in self.views.values())
        if dropped != self.duplicates + self.late:
            return (
                f"{dropped} rows were dropped, but {self.duplicates} are duplicates"
                f" and {self.late} came late; tasks that ran twice may have counted twice"
            )
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchReport:
    """One batch of one sink, from Spark's progress report."""

    batch_id: int
    query_rows: int
    rows: int
    rows_per_s: float
    duration_ms: int
    duplicates: int
    late: int
    late_groups: int
    sources: Mapping[str, tuple[int, int]]
    views: Mapping[str, tuple[int, int]]
    behind: Mapping[str, int]
    """Records not yet read, by partition: `orders-0`."""
    watermark: str | None


def report_of(progress: Mapping[str, Any]) -> BatchReport | None:
    """None if it reports no batch, only that there was no data."""
    durations = progress.get("durationMs") or {}
    if "addBatch" not in durations:
        return None
    observed: Mapping[str, Mapping[str, Any]] = progress.get("observedMetrics") or {}
    operators = progress.get("stateOperators") or []
    dedupers = [each for each in operators if each.get("operatorName") in DEDUPLICATING]
    others = [each for each in operators if each.get("operatorName") not in DEDUPLICATING]
    return BatchReport(
        batch_id=int(progress["batchId"]),
        query_rows=int(progress.get("numInputRows") or 0),
        rows=_number(observed.get("sink"), "rows"),
        rows_per_s=float(progress.get("processedRowsPerSecond") or 0.0),
        duration_ms=int(durations.get("triggerExecution") or 0),
        duplicates=sum(_number(each.get("customMetrics"), _DUPLICATES) for each in dedupers),
        late=sum(_number(each, _LATE) for each in dedupers),
        late_groups=sum(_number(each, _LATE) for each in others),
        sources={
            name.partition(":")[2]: (_number(metrics, "read"), _number(metrics, "dead"))
            for name, metrics in observed.items()
            if name.startswith("source:")
        },
        views={
            name.partition(":")[2]: (
                _number(metrics, "rows"),
                _number(observed.get(f"kept:{name.partition(':')[2]}"), "rows"),
            )
            for name, metrics in observed.items()
            if name.startswith("arrived:")
        },
        behind=lag_by_partition(progress.get("sources") or []),
        watermark=(progress.get("eventTime") or {}).get("watermark"),
    )


_DUPLICATES = "numDroppedDuplicateRows"
_LATE = "numRowsDroppedByWatermark"


def lag_by_partition(sources: list[Mapping[str, Any]]) -> dict[str, int]:
    """The lag by partition: the latest offsets minus the end offsets of a batch."""
    behind: dict[str, int] = {}
    for source in sources:
        ends, latest = _offsets(source.get("endOffset")), _offsets(source.get("latestOffset"))
        for partition, offset in latest.items():
            if partition in ends:
                lag = max(0, offset - ends[partition])
                behind[partition] = max(lag, behind.get(partition, 0))
    return behind


def _offsets(document: object) -> dict[str, int]:
    """`{"orders": {"0": 23}}`, as text or not, to `{"orders-0": 23}`; nothing for other sources."""
    if isinstance(document, str):
        try:
            document = json.loads(document)
        except ValueError:
            return {}
    if not isinstance(document, dict):
        return {}
    return {
        f"{topic}-{partition}": offset
        for topic, partitions in document.items()
        if isinstance(partitions, dict)
        for partition, offset in partitions.items()
        if isinstance(offset, int)
    }


def _number(metrics: Mapping[str, Any] | None, key: str) -> int:
    return int((metrics or {}).get(key) or 0)
