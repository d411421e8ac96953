"""A topic through its brokers, as DataFrames: ranges of offsets, each fetched by one task.

A range is read as a reader of commits reads it, so brokers say which transactions were aborted. The
markers that come along in the same bytes say it again, and both are kept apart: an audit does not
take a broker's word for what is in its log.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tidelog.client.ranges.errors import RangeError
from tidelog.client.shells.range_reader import RangeClient
from tidelog.core.model.ids import TopicPartition
from tidelog.spark.audit.batches import SPARK_ROWS, Judged, Tail, Walked, rows, walk
from tidelog.spark.audit.broker_metadata import BrokerTopic
from tidelog.spark.audit.errors import AuditRefused
from tidelog.spark.audit.tasks import per_item
from tidelog.spark.audit.transactions import (
    ABORTED,
    COMMITTED,
    OPEN,
    Decisions,
    Readers,
    TransactionMarker,
)

RANGE_OFFSETS = 250_000
BUFFERED_BYTES_MAX = 64 * 1024 * 1024
"""Maximum kept until the markers behind it are known; beyond it brokers are believed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetRange:
    """Offsets of one partition for one task."""

    settings: dict[str, str]
    topic: str
    partition: int
    start_offset: int
    end_offset: int
    is_stable: bool
    """Below the last stable offset: every transaction in it is decided."""


Unpack = Callable[[OffsetRange, memoryview, list[Judged]], Iterator[pa.RecordBatch]]


def held_frame(spark: SparkSession, settings: Mapping[str, str], topic: BrokerTopic) -> DataFrame:
    """What the topic holds."""
    return per_item(spark, ranges(settings, topic), partial(read_range, records), SPARK_ROWS)


def ranges(
    settings: Mapping[str, str], topic: BrokerTopic, *, range_offsets: int = RANGE_OFFSETS
) -> list[OffsetRange]:
    """The topic in parts, none across its last stable offset."""
    found = []
    for index, facts in sorted(topic.topic.partitions.items()):
        stable = max(topic.last_stable_offsets[index], facts.log_start_offset)
        for start, end, is_stable in (
            (facts.log_start_offset, stable, True),
            (stable, facts.end_offset, False),
        ):
            found += [
                OffsetRange(
                    settings=dict(settings),
                    topic=topic.topic.topic,
                    partition=index,
                    start_offset=at,
                    end_offset=min(at + range_offsets, end),
                    is_stable=is_stable,
                )
                for at in range(start, end, range_offsets)
            ]
    return found


def read_range(unpack: Unpack, part: OffsetRange) -> Iterator[pa.RecordBatch]:
    """The rows of one range."""
    isolation = "read_committed" if part.is_stable else "read_uncommitted"
    judging = _Judging(part)
    try:
        with RangeClient({**part.settings, "isolation.level": isolation}) as client:
            for fetched in client.read(
                TopicPartition(part.topic, part.partition),
                start_offset=part.start_offset,
                end_offset=part.end_offset,
            ):
                aborted = [(each.first_offset, each.producer_id) for each in fetched.aborted]
                judging.take(fetched.records, aborted)
                for view, judged in judging.decided():
                    yield from unpack(part, view, judged)
    except RangeError as error:
        raise AuditRefused(f"{error}; the topic changed while it was read, or cannot be") from None
    for view, judged in judging.rest():
        yield from unpack(part, view, judged)


def records(part: OffsetRange, view: memoryview, judged: list[Judged]) -> Iterator[pa.RecordBatch]:
    return rows(
        view,
        judged,
        partition=part.partition,
        start_offset=part.start_offset,
        end_offset=part.end_offset,
    )


class _Seen(NamedTuple):
    walked: Walked
    is_skipped: bool


class _Judging:
    """Holds fetched bytes back until the markers of their transactions have come.

    Invariant: `_waiting` are the oldest bytes that are not handed over, in the order of the log.
    """

    def __init__(self, part: OffsetRange) -> None:
        self._part = part
        self._readers = Readers()
        self._markers: list[TransactionMarker] = []
        self._waiting: list[tuple[memoryview, list[_Seen]]] = []
        self._waiting_bytes = 0
        self._open: set[int] = set()
        """Producers with transactional batches among the waiting whose marker has not come."""

    def take(self, view: memoryview, aborted: list[tuple[int, int]]) -> None:
        self._readers.hear(aborted)
        tail = Tail()
        seen = []
        for each in walk(view, tail):
            header = each.header
            if not each.is_sound:
                raise AuditRefused(
                    f"{self._part.topic}-{self._part.partition}: a broker serves a batch with a "
                    f"wrong checksum at offset {header.base_offset}"
                )
            if each.marker is not None:
                self._markers.append(each.marker)
                self._readers.meets(each.marker)
                self._open.discard(each.marker.producer_id)
            elif not header.is_control:
                is_skipped = header.is_transactional and self._readers.skips(
                    header.producer_id, header.base_offset, header.end_offset
                )
                if header.is_transactional:
                    self._open.add(header.producer_id)
                seen.append(_Seen(each, is_skipped))
        self._waiting.append((view, seen))
        self._waiting_bytes += len(view)

    def decided(self) -> Iterator[tuple[memoryview, list[Judged]]]:
        """Everything, if no transaction is open or too much waits."""
        if not self._open or self._waiting_bytes > BUFFERED_BYTES_MAX:
            yield from self.rest()

    def rest(self) -> Iterator[tuple[memoryview, list[Judged]]]:
        decisions = Decisions(self._markers)
        waiting, self._waiting, self._waiting_bytes = self._waiting, [], 0
        for view, seen in waiting:
            yield view, [self._judged(each, decisions) for each in seen]

    def _judged(self, seen: _Seen, decisions: Decisions) -> Judged:
        header = seen.walked.header
        state = COMMITTED
        if header.is_transactional:
            state = decisions.state(header.producer_id, header.base_offset)
            if state == OPEN and self._part.is_stable:  # its marker lies behind this range
                state = ABORTED if seen.is_skipped else COMMITTED
        # Above the last stable offset brokers tell nothing of aborts, so markers alone count.
        is_visible = not seen.is_skipped if self._part.is_stable else state == COMMITTED
        return Judged(seen.walked, state, is_visible)
