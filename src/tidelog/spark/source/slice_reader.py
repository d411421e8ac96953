"""What a task does: fetch one slice and turn it into columns, with the next fetch on its way."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from tidelog.client.ranges.errors import Loss, RangeLost
from tidelog.client.shells.range_reader import RangeClient
from tidelog.core.model.ids import TopicPartition
from tidelog.spark.columns.decode import Aborted, ColumnDecoder, record_schema
from tidelog.spark.source.errors import DataLossPolicy
from tidelog.spark.source.options import SourceOptions
from tidelog.spark.source.slices import OffsetSlice

_TOPIC = pa.field("topic", pa.string())
_PARTITION = pa.field("partition", pa.int32())
TASKS_BEFORE_FREEZING = 2
_tasks_begun = 0
_clients: dict[tuple[object, ...], RangeClient] = {}
"""Of this worker, which Spark uses for many tasks: connections and metadata outlive a task."""


def read_slice(options: SourceOptions, slice_: OffsetSlice) -> Iterator[pa.RecordBatch]:
    """The slice's rows. Offsets that are gone raise DataLost, or are left out with a warning."""
    _freeze_imported_objects()
    slice_ = _resolve_open_ends(options, slice_)
    loss = DataLossPolicy(fails=options.fails_on_data_loss)
    start: int | None = slice_.start
    while start is not None and start < slice_.end:
        try:
            yield from _read(options, slice_, start)
            return
        except RangeLost as lost:
            loss.report(
                f"Offsets {slice_.start} to {slice_.end} (exclusive) were to be read: {lost}"
            )
            start = _resume_offset(lost, slice_)


def _resolve_open_ends(options: SourceOptions, slice_: OffsetSlice) -> OffsetSlice:
    if not slice_.is_start_open and not slice_.is_end_open:
        return slice_
    first, end = _client(options).bounds(slice_.partition)
    return OffsetSlice(
        slice_.partition,
        first if slice_.is_start_open else slice_.start,
        end if slice_.is_end_open else slice_.end,
    )


def _read(options: SourceOptions, slice_: OffsetSlice, start: int) -> Iterator[pa.RecordBatch]:
    decoder = ColumnDecoder(
        start_offset=start,
        end_offset=slice_.end,
        is_read_committed=options.is_read_committed,
        with_headers=options.includes_headers,
    )
    columns = PartitionColumns(slice_.partition)
    client = _client(options)
    for fetched in client.read(slice_.partition, start_offset=start, end_offset=slice_.end):
        aborted = [Aborted(each.producer_id, each.first_offset) for each in fetched.aborted]
        for decoded in decoder.decode(fetched.records, aborted):
            if decoded.records:
                yield columns.add_to(decoded.columns)


def _resume_offset(lost: RangeLost, slice_: OffsetSlice) -> int | None:
    """The first offset after what was deleted; None if the slice ends before it."""
    first = lost.log_start_offset
    if lost.kind != Loss.DELETED or first is None or first >= slice_.end:
        return None
    return max(first, lost.offset)


def _client(options: SourceOptions) -> RangeClient:
    settings, stalled_s = options.client.given, options.poll_timeout_ms / 1_000
    key = (*sorted(settings.items()), stalled_s)
    if key not in _clients:
        _clients[key] = RangeClient(settings, stalled_s=stalled_s)
    return _clients[key]


def _freeze_imported_objects() -> None:
    """Spark's worker collects garbage after every task, through all that was ever imported. What
    exists after the first tasks stays for good, and need not be examined each time."""
    global _tasks_begun
    _tasks_begun += 1
    if _tasks_begun <= TASKS_BEFORE_FREEZING:
        gc.freeze()


class PartitionColumns:
    """Topic and partition, the same in every row of a slice.

    The arrays are made once for the largest batch so far; smaller ones get a part of them.
    """

    def __init__(self, partition: TopicPartition) -> None:
        self._partition = partition
        self._topics = pa.array([], pa.string())
        self._indexes = pa.array([], pa.int32())

    def add_to(self, columns: pa.RecordBatch) -> pa.RecordBatch:
        """Key, value, topic, partition, offset and the rest, as Spark's Kafka source has them."""
        rows = columns.num_rows
        if rows > len(self._topics):
            self._grow(rows)
        arrays = columns.columns
        where = [self._topics.slice(0, rows), self._indexes.slice(0, rows)]
        return pa.RecordBatch.from_arrays(
            [*arrays[:2], *where, *arrays[2:]], schema=row_schema(columns.schema)
        )

    def _grow(self, rows: int) -> None:
        name = self._partition.topic.encode()
        starts = np.arange(rows + 1, dtype=np.int32) * np.int32(len(name))
        buffers = [None, pa.py_buffer(starts), pa.py_buffer(name * rows)]
        self._topics = pa.Array.from_buffers(pa.string(), rows, buffers)
        self._indexes = pa.array(np.full(rows, self._partition.index, dtype=np.int32))


def row_schema(records: pa.Schema) -> pa.Schema:
    """The schema of rows: that of records, with topic and partition."""
    fields = list(records)
    return pa.schema([*fields[:2], _TOPIC, _PARTITION, *fields[2:]])


def source_row_schema(*, with_headers: bool) -> pa.Schema:
    """The schema of what the source gives to Spark."""
    return row_schema(record_schema(with_headers=with_headers))
