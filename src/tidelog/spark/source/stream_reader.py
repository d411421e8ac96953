"""`spark.readStream`: positions move from batch to batch, and Spark's checkpoint keeps them."""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    ReadMinRows,
    SupportsTriggerAvailableNow,
)

from tidelog.spark.source.cluster_view import ClusterView
from tidelog.spark.source.errors import DataLossPolicy
from tidelog.spark.source.offsets import Positions, from_json, start_in, to_json
from tidelog.spark.source.options import stream_options
from tidelog.spark.source.positions import start_positions
from tidelog.spark.source.slice_reader import read_slice
from tidelog.spark.source.slices import limit_offsets, make_slices, partition_names

if TYPE_CHECKING:
    import pyarrow as pa


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """One runs beside the driver and plans; pickled copies of it read in the tasks."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._options = stream_options(given)
        self._view: ClusterView | None = None
        self._initial: Positions | None = None
        self._latest: Positions | None = None
        self._is_available_now = False
        self._last_trigger_ms: int | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_view": None}

    # Beside the driver

    def initialOffset(self) -> Any:  # noqa: N802 - Spark's name
        """Spark calls it more than once; the answer must stay the same."""
        if self._initial is None:
            for text in self._options.warnings:
                warnings.warn(text, stacklevel=2)
            view = self._cluster()
            self._initial = start_positions(
                view,
                view.partitions(),
                self._options.start,
                without_match_latest=self._options.starts_at_latest_without_match,
                loss=self._loss(),
            )
        return to_json(self._initial)

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """Spark passes it back to `latestOffset`; the options have the details."""
        options = self._options
        if options.trigger_offsets_max is not None:
            return ReadMaxRows(options.trigger_offsets_max)
        if options.trigger_offsets_min is not None:
            return ReadMinRows(options.trigger_offsets_min)
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        self._is_available_now = True
        self._latest = None

    def latestOffset(self, start: Any, limit: ReadLimit) -> Any:  # noqa: N802 - Spark's name
        known = from_json(start)
        if self._latest is None or not self._is_available_now:
            view = self._cluster()
            partitions = view.partitions_after(known.keys())
            self._latest = view.latest(partitions, known=known)
        end = self._end(known, self._latest, limit)
        if end == known:
            return start
        is_first = self._initial is not None and known == self._initial
        return to_json(end, start=known if is_first else None)

    def reportLatestOffset(self) -> Any:  # noqa: N802 - Spark's name
        """The latest offsets when Spark last asked, for its progress report."""
        return to_json(self._latest) if self._latest else None

    def partitions(self, start: Any, end: Any) -> list[InputPartition]:
        if start == end:
            return []
        # After a crash in the first batch the given start was resolved again: ignore it.
        known = start_in(end) or from_json(start)
        until = from_json(end)
        begin = self._with_new(known, until)
        self._check(known, begin, until)
        found = make_slices(
            begin,
            until,
            partitions_min=self._options.partitions_min,
            partition_records_max=self._options.partition_records_max,
        )
        return [InputPartition(each) for each in found]

    def stop(self) -> None:
        if self._view is not None:
            self._view.close()
            self._view = None

    # In a task

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        return read_slice(self._options, partition.value)

    # How far a batch goes

    def _end(self, known: Positions, latest: Positions, limit: ReadLimit) -> Positions:
        options = self._options
        if isinstance(limit, ReadAllAvailable):
            return latest
        begin = self._with_new(known, latest)
        ready = sum(max(0, latest[each] - begin.get(each, latest[each])) for each in latest)
        if options.trigger_offsets_min is not None and self._waits_for_more(ready):
            return known
        if options.trigger_offsets_max is None:
            return latest
        return limit_offsets(begin, latest, offsets_max=options.trigger_offsets_max)

    def _waits_for_more(self, ready: int) -> bool:
        """Returns whether there are too few offsets, and the last batch is not long ago."""
        assert self._options.trigger_offsets_min is not None
        now_ms = time.monotonic_ns() // 1_000_000
        is_late = (
            self._last_trigger_ms is None
            or now_ms - self._last_trigger_ms >= self._options.trigger_delay_max_ms
        )
        # What is available now is all that will come: there is nothing to wait for.
        if is_late or self._is_available_now or ready >= self._options.trigger_offsets_min:
            self._last_trigger_ms = now_ms
            return False
        return True

    def _with_new(self, known: Positions, latest: Positions) -> Positions:
        """New partitions begin at their first record."""
        appeared = frozenset(latest.keys() - known.keys())
        if not appeared:
            return known
        return {**known, **self._cluster().earliest(appeared)}

    def _check(self, known: Positions, begin: Positions, until: Positions) -> None:
        """Report a loss for what the batch can no longer read."""
        loss = self._loss()
        if gone := known.keys() - until.keys():
            loss.report(
                f"Partitions are gone: {partition_names(gone)}; what was not read of them is lost"
            )
        for partition in sorted(until):
            first, end = begin[partition], until[partition]
            if partition not in known and first > 0:
                loss.report(f"{partition} is new, but begins with offset {first}")
            if end < first:
                loss.report(f"{partition} was read up to offset {first}, but ends at {end} now")

    def _loss(self) -> DataLossPolicy:
        return DataLossPolicy(fails=self._options.fails_on_data_loss)

    def _cluster(self) -> ClusterView:
        if self._view is None:
            self._view = ClusterView(self._options)
        return self._view
