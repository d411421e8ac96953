"""What a task does: one slice, fetched and turned into columns, with the next fetch on its way."""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa

from tidelog.client.ranges.errors import Loss, RangeLost
from tidelog.client.shells.range_reader import RangeClient
from tidelog.spark.columns.decode import Aborted, ColumnDecoder
from tidelog.spark.source.data_loss import DataLoss
from tidelog.spark.source.named_columns import NamedColumns
from tidelog.spark.source.options import SourceOptions
from tidelog.spark.source.slices import OffsetSlice

TASKS_BEFORE_FREEZING = 2
_tasks_begun = 0
_clients: dict[tuple[object, ...], RangeClient] = {}
"""Of this worker, which Spark uses for many tasks: connections and metadata outlive a task."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReaderSettings:
    """All that tasks need besides their slices; picklable."""

    settings: Mapping[str, str]
    stalled_s: float
    is_read_committed: bool
    with_headers: bool
    fails_on_data_loss: bool


def reader_settings(options: SourceOptions) -> ReaderSettings:
    return ReaderSettings(
        settings=options.client.given,
        stalled_s=options.poll_timeout_ms / 1_000,
        is_read_committed=options.is_read_committed,
        with_headers=options.includes_headers,
        fails_on_data_loss=options.fails_on_data_loss,
    )


def read_slice(plan: ReaderSettings, wanted: OffsetSlice) -> Iterator[pa.RecordBatch]:
    """The slice's rows. What is gone raises DataLost, or is left out with a warning."""
    _spare_the_collector()
    wanted = _as_of_now(plan, wanted)
    loss = DataLoss(fails=plan.fails_on_data_loss)
    start: int | None = wanted.start
    while start is not None and start < wanted.end:
        try:
            yield from _read(plan, wanted, start)
            return
        except RangeLost as lost:
            loss.report(
                f"Offsets {wanted.start} to {wanted.end} (exclusive) were to be read: {lost}"
            )
            start = _where_to_go_on(lost, wanted)


def _as_of_now(plan: ReaderSettings, wanted: OffsetSlice) -> OffsetSlice:
    if not wanted.is_start_open and not wanted.is_end_open:
        return wanted
    first, end = _client(plan).fences(wanted.partition)
    return OffsetSlice(
        wanted.partition,
        first if wanted.is_start_open else wanted.start,
        end if wanted.is_end_open else wanted.end,
    )


def _read(plan: ReaderSettings, wanted: OffsetSlice, start: int) -> Iterator[pa.RecordBatch]:
    decoder = ColumnDecoder(
        start_offset=start,
        end_offset=wanted.end,
        is_read_committed=plan.is_read_committed,
        with_headers=plan.with_headers,
    )
    named = NamedColumns(wanted.partition)
    client = _client(plan)
    for fetched in client.read(wanted.partition, start_offset=start, end_offset=wanted.end):
        aborted = [Aborted(each.producer_id, each.first_offset) for each in fetched.aborted]
        for decoded in decoder.decode(fetched.records, aborted):
            if decoded.records:
                yield named.add_to(decoded.columns)


def _where_to_go_on(lost: RangeLost, wanted: OffsetSlice) -> int | None:
    """Behind what was deleted, if that is still in the slice."""
    first = lost.log_start_offset
    if lost.kind != Loss.DELETED or first is None or first >= wanted.end:
        return None
    return max(first, lost.offset)


def _client(plan: ReaderSettings) -> RangeClient:
    key = (*sorted(plan.settings.items()), plan.stalled_s)
    if key not in _clients:
        _clients[key] = RangeClient(plan.settings, stalled_s=plan.stalled_s)
    return _clients[key]


def _spare_the_collector() -> None:
    """Spark's worker collects garbage after every task, through all that was ever imported. What
    is there after the first tasks is there for good, and need not be looked at each time."""
    global _tasks_begun
    _tasks_begun += 1
    if _tasks_begun <= TASKS_BEFORE_FREEZING:
        gc.freeze()
