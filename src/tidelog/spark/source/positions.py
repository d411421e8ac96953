"""Where reading begins and ends in every partition: options resolved against the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from tidelog.core.model.ids import TopicPartition
from tidelog.spark.source.bounds import EARLIEST, LATEST, AtOffsets, AtTime, AtTimes, Bound, Edge
from tidelog.spark.source.errors import DataLossPolicy, OptionError
from tidelog.spark.source.offsets import Positions
from tidelog.spark.source.slices import partition_names


class ClusterOffsets(Protocol):
    """The questions to the cluster."""

    def earliest(self, partitions: frozenset[TopicPartition]) -> Positions: ...
    def latest(
        self, partitions: frozenset[TopicPartition], *, known: Mapping[TopicPartition, int]
    ) -> Positions: ...
    def at_times(
        self, timestamps_ms: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, int | None]: ...


def start_positions(
    lookup: ClusterOffsets,
    partitions: frozenset[TopicPartition],
    bound: Bound,
    *,
    without_match_latest: bool,
    loss: DataLossPolicy,
) -> Positions:
    """Where reading begins; offsets that are no longer in the log are a data loss."""
    if bound is Edge.EARLIEST:
        return lookup.earliest(partitions)
    if bound is Edge.LATEST:
        return lookup.latest(partitions, known={})
    if isinstance(bound, AtOffsets):
        return _at_offsets(lookup, partitions, bound, loss)
    found = _at_times(lookup, partitions, bound)
    unmatched = frozenset(each for each, offset in found.items() if offset is None)
    if unmatched and not without_match_latest:
        raise OptionError(
            f"{bound.option}: all records of {partition_names(unmatched)} are older;"
            " startingOffsetsByTimestampStrategy=latest begins at their end"
        )
    return _with_latest(lookup, found)


def end_positions(
    lookup: ClusterOffsets,
    partitions: frozenset[TopicPartition],
    bound: Bound,
    *,
    loss: DataLossPolicy,
) -> Positions:
    """Where a batch ends; a time after all records is the end of the log."""
    if isinstance(bound, Edge):
        return lookup.latest(partitions, known={})
    if isinstance(bound, AtOffsets):
        return _at_offsets(lookup, partitions, bound, loss)
    return _with_latest(lookup, _at_times(lookup, partitions, bound))


def _at_offsets(
    lookup: ClusterOffsets,
    partitions: frozenset[TopicPartition],
    bound: AtOffsets,
    loss: DataLossPolicy,
) -> Positions:
    _check_names(bound.option, partitions, bound.offsets)
    firsts = lookup.earliest(partitions)
    ends = lookup.latest(partitions, known=bound.offsets)
    found: Positions = {}
    for partition, offset in bound.offsets.items():
        if offset in (EARLIEST, LATEST):
            found[partition] = (firsts if offset == EARLIEST else ends)[partition]
            continue
        first, end = firsts[partition], ends[partition]
        if not first <= offset <= end:
            loss.report(
                f"{bound.option} of {partition} is {offset}, but the log has offsets {first} to"
                f" {end} (exclusive)"
            )
        found[partition] = min(max(offset, first), end)
    return found


def _at_times(
    lookup: ClusterOffsets, partitions: frozenset[TopicPartition], bound: AtTimes | AtTime
) -> dict[TopicPartition, int | None]:
    if isinstance(bound, AtTime):
        return lookup.at_times(dict.fromkeys(partitions, bound.timestamp_ms))
    _check_names(bound.option, partitions, bound.timestamps_ms)
    return lookup.at_times(bound.timestamps_ms)


def _with_latest(lookup: ClusterOffsets, found: Mapping[TopicPartition, int | None]) -> Positions:
    unmatched = frozenset(each for each, offset in found.items() if offset is None)
    ends = lookup.latest(unmatched, known={}) if unmatched else {}
    return {each: ends[each] if offset is None else offset for each, offset in found.items()}


def _check_names(
    option: str,
    partitions: frozenset[TopicPartition],
    named: Mapping[TopicPartition, int],
) -> None:
    if missing := partitions - named.keys():
        raise OptionError(
            f"{option} must name every partition that is read; missing: {partition_names(missing)}"
        )
    if extra := named.keys() - partitions:
        raise OptionError(f"{option} names partitions that are not read: {partition_names(extra)}")
