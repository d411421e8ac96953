"""Which task reads what: pure arithmetic on positions, so that a retry plans the same slices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from tidelog.core.model.ids import TopicPartition
from tidelog.spark.source.offsets import Positions


@dataclass(frozen=True, slots=True)
class OffsetSlice:
    """What one task reads: offsets from `start` to before `end`.

    An open start or end is where the log began or ended when this was planned. Spark keeps the plan
    of a frame, so the task of a later action asks for the start or end again.
    """

    partition: TopicPartition
    start: int
    end: int
    is_start_open: bool = False
    is_end_open: bool = False

    def __len__(self) -> int:
        return self.end - self.start


def limit_offsets(start: Positions, latest: Positions, *, offsets_max: int) -> Positions:
    """The end of a batch of about `offsets_max`, in proportion to what each partition has.

    `start` has every partition. A partition with anything to read gets at least one offset, so the
    batch may be a little larger.
    """
    sizes = {each: latest[each] - start[each] for each in latest if latest[each] > start[each]}
    total = sum(sizes.values())
    if total <= offsets_max:
        return dict(latest)
    ends = dict(latest)
    for partition, size in sizes.items():
        share = offsets_max * size / total
        taken = math.ceil(share) if share < 1 else math.floor(share)
        ends[partition] = min(latest[partition], start[partition] + taken)
    return ends


def make_slices(
    start: Mapping[TopicPartition, int],
    end: Mapping[TopicPartition, int],
    *,
    partitions_min: int | None,
    partition_records_max: int | None,
) -> list[OffsetSlice]:
    """One slice per partition with something to read, more where options ask for them."""
    found = [
        OffsetSlice(each, start[each], end[each]) for each in sorted(end) if start[each] < end[each]
    ]
    if partition_records_max is not None:
        found = [
            part
            for each in found
            for part in _cut(each, math.ceil(len(each) / partition_records_max))
        ]
    if partitions_min is None or len(found) >= partitions_min:
        return found
    return _at_least(found, partitions_min)


def open_slices(
    found: list[OffsetSlice],
    start: Mapping[TopicPartition, int],
    *,
    open_starts: AbstractSet[TopicPartition],
    open_ends: AbstractSet[TopicPartition],
) -> list[OffsetSlice]:
    """The same slices, the first or last of a partition open where its start or end is."""
    by_partition: dict[TopicPartition, list[OffsetSlice]] = {each: [] for each in sorted(start)}
    for each in found:
        by_partition[each.partition].append(each)
    for partition, mine in by_partition.items():
        if partition in open_ends:
            if not mine:  # a later action may find something there
                mine.append(OffsetSlice(partition, start[partition], start[partition]))
            mine[-1] = replace(mine[-1], is_end_open=True)
        if partition in open_starts and mine:
            mine[0] = replace(mine[0], is_start_open=True)
    return [each for mine in by_partition.values() for each in mine]


def _at_least(found: list[OffsetSlice], partitions_min: int) -> list[OffsetSlice]:
    """Cut the large ones, in proportion; small ones stay whole and do not count."""
    total = sum(len(each) for each in found)
    whole = [each for each in found if _parts(each, total, partitions_min) == 1]
    rest = total - sum(len(each) for each in whole)
    wanted = max(1, partitions_min - len(whole))
    cut: list[OffsetSlice] = []
    for each in found:
        cut += [each] if each in whole else _cut(each, _parts(each, rest, wanted))
    return cut


def _parts(each: OffsetSlice, total: int, partitions: int) -> int:
    return max(1, math.floor(len(each) / total * partitions + 0.5))


def _cut(whole: OffsetSlice, parts: int) -> list[OffsetSlice]:
    cut: list[OffsetSlice] = []
    start = whole.start
    for left in range(parts, 0, -1):
        end = start + (whole.end - start) // left
        if start < end:
            cut.append(OffsetSlice(whole.partition, start, end))
        start = end
    return cut


def partition_names(partitions: Iterable[TopicPartition]) -> str:
    """Sorted and joined, for messages."""
    return ", ".join(str(each) for each in sorted(partitions))
