"""One run of `tidelog consume`: find the ends, read on, and say what cannot be hidden."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tidelog.cli.consume.plan import Reading, first_offset
from tidelog.cli.exit_codes import Stop, VerbFailed, complain
from tidelog.cli.option_values import EARLIEST, LATEST, Start
from tidelog.client.consumer.errors import LogTruncationError, OutOfRange
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.shells.blocking_clients import Consumer
from tidelog.core.model.ids import TopicPartition

POLL_S = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRange:
    """What somebody wants to read."""

    partitions: Sequence[TopicPartition]
    start: Start
    from_time_ms: int | None
    stops_at_end: bool
    until_offset: int | None
    records_max: int | None
    timeout_s: float

    @property
    def needs_lookup(self) -> bool:
        """Whether the ends must be known before anything is read."""
        return (
            self.stops_at_end
            or self.until_offset is not None
            or self.from_time_ms is not None
            or self.start not in (EARLIEST, LATEST)
        )


def read_on(
    settings: Mapping[str, str], read_range: ReadRange, show: Callable[[ConsumerRecord], bytes]
) -> None:
    """Records to standard output until the wish is fulfilled, or somebody wants it to end."""
    with Stop() as stop, Consumer(settings) as consumer:
        reading = _begin(consumer, read_range)
        remaining = list(read_range.partitions)
        progress_s = time.monotonic()
        while remaining and not stop.is_requested:
            records, has_moved = poll(consumer, reading)
            for record in records:
                sys.stdout.buffer.write(show(record))
            if records:
                sys.stdout.buffer.flush()
            if records or has_moved:
                progress_s = time.monotonic()
            if read_range.needs_lookup or read_range.records_max is not None:
                positions = {each: consumer.position(each) for each in remaining}
                still_open = reading.open_partitions(positions)
                if still_open != remaining:
                    remaining = [each for each in remaining if each in still_open]
                    consumer.assign(remaining)
                    progress_s = time.monotonic()
            if read_range.stops_at_end and time.monotonic() - progress_s > read_range.timeout_s:
                names = ", ".join(
                    f"{each} at {consumer.position(each)} of {reading.end_of(each)}"
                    for each in remaining
                )
                raise VerbFailed(f"nothing came for {read_range.timeout_s:g} s: {names}")


def _begin(consumer: Consumer, read_range: ReadRange) -> Reading:
    """Seeks everywhere, and says how far to go."""
    if not read_range.needs_lookup:
        consumer.assign(read_range.partitions)
        for each in read_range.partitions:
            seek = (
                consumer.seek_to_beginning if read_range.start == EARLIEST else consumer.seek_to_end
            )
            seek(each)
        return Reading(dict.fromkeys(read_range.partitions), records_max=read_range.records_max)
    starts = consumer.beginning_offsets(read_range.partitions)
    ends = consumer.end_offsets(read_range.partitions)
    firsts: dict[TopicPartition, int] = {}
    if read_range.from_time_ms is not None:
        times = dict.fromkeys(read_range.partitions, read_range.from_time_ms)
        for each, found in consumer.offsets_for_times(times).items():
            firsts[each] = ends[each] if found is None else found.offset
    for each in read_range.partitions if read_range.from_time_ms is None else ():
        try:
            firsts[each] = first_offset(
                read_range.start, log_start_offset=starts[each], end_offset=ends[each]
            )
        except ValueError as error:
            raise VerbFailed(f"OFFSET_OUT_OF_RANGE: {each}: {error}") from None
    consumer.assign(read_range.partitions)
    for each, first in firsts.items():
        consumer.seek(each, first)
    return Reading(
        {each: _end(read_range, ends[each]) for each in read_range.partitions},
        records_max=read_range.records_max,
    )


def _end(read_range: ReadRange, end_offset: int) -> int | None:
    wanted = [read_range.until_offset] if read_range.until_offset is not None else []
    if read_range.stops_at_end:
        wanted.append(end_offset)
    return min(wanted, default=None)


def poll(consumer: Consumer, reading: Reading) -> tuple[list[ConsumerRecord], bool]:
    """What came, and whether a position was moved: a reader must know of that, so it is told."""
    try:
        return reading.takes(consumer.poll(POLL_S)), False
    except LogTruncationError as cut:
        complain("consume", f"{cut}; reading on from there")
        end_offset = consumer.end_offsets([cut.partition])[cut.partition]
        reading.shorten(cut.partition, end_offset)
        if cut.divergence is None:
            consumer.seek_to_beginning(cut.partition)
        else:
            consumer.seek(cut.partition, cut.divergence)
    except OutOfRange as gone:
        first = consumer.beginning_offsets([gone.partition])[gone.partition]
        complain("consume", f"OFFSET_OUT_OF_RANGE: {gone}; reading on from {first}")
        consumer.seek(gone.partition, first)
    return [], True
