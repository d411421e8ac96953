"""`spark.read`: which partitions, and which offsets of them, as Spark plans the query."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSourceReader, InputPartition

from tidelog.spark.source.bounds import Edge, at_edge
from tidelog.spark.source.cluster_view import ClusterView
from tidelog.spark.source.errors import DataLossPolicy, OptionError
from tidelog.spark.source.options import SourceOptions, batch_options
from tidelog.spark.source.positions import end_positions, start_positions
from tidelog.spark.source.slice_reader import read_slice
from tidelog.spark.source.slices import OffsetSlice, make_slices, open_slices

if TYPE_CHECKING:
    import pyarrow as pa


class BatchReader(DataSourceReader):
    """Made by the driver, pickled, and unpickled by every task."""

    def __init__(self, given: Mapping[str, str]) -> None:
        self._options = batch_options(given)

    def partitions(self) -> list[InputPartition]:
        for text in self._options.warnings:
            warnings.warn(text, stacklevel=2)
        view = ClusterView(self._options)
        try:
            return [InputPartition(each) for each in plan_slices(self._options, view)]
        finally:
            view.close()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        # Spark makes one partition of nothing where there are none.
        if partition.value is None:
            return iter(())
        return read_slice(self._options, partition.value)


def plan_slices(options: SourceOptions, view: ClusterView) -> list[OffsetSlice]:
    """The slices that the tasks read."""
    loss = DataLossPolicy(fails=options.fails_on_data_loss)
    partitions = view.partitions()
    end = end_positions(view, partitions, options.end, loss=loss)
    start = start_positions(
        view,
        partitions,
        options.start,
        without_match_latest=options.starts_at_latest_without_match,
        loss=loss,
    )
    for partition in sorted(partitions):
        if start[partition] > end[partition]:
            raise OptionError(
                f"the starting offset of {partition} ({start[partition]}) is after its ending"
                f" offset ({end[partition]})"
            )
    found = make_slices(
        start,
        end,
        partitions_min=options.partitions_min,
        partition_records_max=options.partition_records_max,
    )
    return open_slices(
        found,
        start,
        open_starts=at_edge(options.start, Edge.EARLIEST, partitions),
        open_ends=at_edge(options.end, Edge.LATEST, partitions),
    )
