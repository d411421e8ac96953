"""A number for every partition of a sink's topics, and the choice of one for every row.

Keys go where Java's default partitioner sends them. Rows without a key are spread evenly, in runs,
by their position in their Arrow batch and the number of their task: the same input always gets the
same partitions, which Spark relies on when it computes lost shuffle files again.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidelog.core.model.exceptions import TidelogError
from tidelog.core.model.ids import TopicPartition
from tidelog.spark.columns.murmur2 import partitions_of

OUTPUT = "output_partition"
"""The column that has the number."""
Numbers = NDArray[np.int32]


class RowRefused(TidelogError, ValueError):
    """A row that cannot be written; the batch is not published."""


@dataclass(frozen=True, slots=True)
class OutputPartitions:
    """Partitions in their order: all of the first topic, then all of the next."""

    counts: tuple[tuple[str, int], ...]
    """Topics and how many partitions they have."""

    @classmethod
    def of(cls, partitions: Iterable[TopicPartition]) -> OutputPartitions:
        counts: dict[str, int] = {}
        for each in partitions:
            counts[each.topic] = max(counts.get(each.topic, 0), each.index + 1)
        return cls(tuple(sorted(counts.items())))

    def __len__(self) -> int:
        return sum(count for _, count in self.counts)

    def partition(self, number: int) -> TopicPartition:
        for topic, count in self.counts:
            if number < count:
                return TopicPartition(topic, number)
            number -= count
        raise AssertionError("no such output partition")

    def of_rows(
        self,
        *,
        topics: pa.Array | None,
        keys: pa.Array | None,
        partitions: pa.Array | None,
        rows: int,
        task: int,
    ) -> Numbers:
        """The output partition of each row. Without `topics` there is one topic for all."""
        if topics is None:
            ((_, count),) = self.counts
            return _in_topic(keys, partitions, count, rows=rows, task=task)
        numbers = np.empty(rows, dtype=np.int32)
        left = np.ones(rows, dtype=bool)
        first = 0
        for topic, count in self.counts:
            chosen = np.flatnonzero(_equal(topics, topic))
            left[chosen] = False
            take = pa.array(chosen)
            numbers[chosen] = first + _in_topic(
                None if keys is None else keys.take(take),
                None if partitions is None else partitions.take(take),
                count,
                rows=len(chosen),
                task=task,
            )
            first += count
        if left.any():
            raise RowRefused(self._stray(topics[int(np.flatnonzero(left)[0])].as_py()))
        return numbers

    def _stray(self, topic: str | None) -> str:
        known = ", ".join(name for name, _ in self.counts)
        if topic is None:
            return "a row has no topic (null)"
        return f"a row names topic {topic!r}, which is not among the sink's topics: {known}"


def _equal(topics: pa.Array, topic: str) -> NDArray[np.bool_]:
    import pyarrow.compute as pc

    same = pc.fill_null(pc.equal(topics, pa.scalar(topic, topics.type)), False)
    return np.asarray(same.to_numpy(zero_copy_only=False))


def _in_topic(
    keys: pa.Array | None, partitions: pa.Array | None, count: int, *, rows: int, task: int
) -> Numbers:
    spread = _spread(rows, count, task=task)
    chosen = spread if keys is None else partitions_of(keys, count, without_key=spread)
    if partitions is None or partitions.null_count == rows:
        return chosen
    given = partitions.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int32)
    is_given = ~np.asarray(partitions.is_null().to_numpy(zero_copy_only=False))
    wrong = given[is_given & ((given < 0) | (given >= count))]
    if len(wrong):
        raise RowRefused(f"a row names partition {wrong[0]}, and the topic has {count}")
    return np.where(is_given, given, chosen).astype(np.int32)


def _spread(rows: int, count: int, *, task: int) -> Numbers:
    """Each partition gets a run of about as many rows as the others."""
    run = max(1, -(-rows // count))
    return ((task + np.arange(rows) // run) % count).astype(np.int32)
