"""The log cleaner: of each key only the newest record stays, in every log that is to be compacted.

One log is cleaned at a time, the dirtiest of those that are due. A round reads the dirty part and
notes the newest offset of each key (key_offset_map.py); then it writes all segments up to there
anew, without the records that a later one replaces (batch_filter.py), and exchanges them
(segment_swap.py). If the keys do not fit into the memory that it may take, the round ends where the
map was full, and the next one goes on there.

The work is done in slices: a caller's turn is never held longer than a slice takes. A slice is
counted in records and bytes, because the core has no clock. The one thing that cannot be cut is
the decompression of a single batch.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass

from tidelog.core.model.trace import Trace
from tidelog.core.storage import events
from tidelog.core.storage.batch_filter import WORK_BYTES, BatchFilter, Work
from tidelog.core.storage.batch_reader import refuse_implausible
from tidelog.core.storage.cleaned_transactions import CleanedTransactions
from tidelog.core.storage.key_offset_map import KeyOffsetMap
from tidelog.core.storage.log import Log
from tidelog.core.storage.log_to_clean import LogToClean, groups, log_to_clean
from tidelog.core.storage.producers import AbortedTransaction
from tidelog.core.storage.segment import Segment
from tidelog.core.storage.segment_swap import SegmentSwap
from tidelog.core.storage.validation import end_marker_of
from tidelog.core.wire.record_batch import (
    HEADER_BYTES,
    BatchHeader,
    CorruptBatch,
    crc_is_valid,
    read_header,
)
from tidelog.core.wire.records import packed_records

SLICE_WORK = 200
"""Records, or pieces of 4 KiB, per slice: some 2 ms of a turn."""
SLICE_INTERVAL_MS = 5
"""Between two slices, so that everybody else gets more than half of the time."""
_WAITING = -1
"""The work of one who can only wait for a sync."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanerSettings:
    """Kafka's `log.cleaner.*`, as they are when a round begins."""

    is_enabled: bool = True
    backoff_ms: int = 15_000
    map_bytes: int = 128 * 2**20
    map_load_factor: float = 0.9
    read_bytes: int = 512 * 2**10
    bytes_per_second_max: float = float("inf")


class LogCleaner:
    """See the module. `run_slice` is called when the delay that it returned is over."""

    def __init__(
        self,
        *,
        logs: Callable[[], Iterable[Log]],
        settings: Callable[[], CleanerSettings],
        trace: Trace,
        slice_work: int = SLICE_WORK,
    ) -> None:
        self._logs = logs
        self._read_settings = settings
        self._settings = settings()
        self._trace = trace
        self._slice_work = slice_work
        self._work: Work | None = None
        self._log: Log | None = None
        """The log that is cleaned now."""
        self._removals = 0
        self._bytes_read = 0

    @property
    def is_busy(self) -> bool:
        """In the middle of a round."""
        return self._work is not None

    def run_slice(self, wall_ms: int) -> int:
        """Go on, or begin a round; after how many milliseconds to call again."""
        if self._work is None:
            self._settings = self._read_settings()
            if not self._settings.is_enabled:
                return self._settings.backoff_ms
            self._work = self._round(wall_ms)
        elif self._must_abandon():
            self._abandon()
            return SLICE_INTERVAL_MS
        self._bytes_read = 0
        done = 0
        try:
            for work in self._work:
                if work == _WAITING:
                    return self._delay_ms()
                done += work
                if done >= self._slice_work:
                    return self._delay_ms()
        except CorruptBatch as error:
            self._give_up(str(error))
            return SLICE_INTERVAL_MS
        cleaned_one = self._log is not None
        self._work = self._log = None
        return SLICE_INTERVAL_MS if cleaned_one else self._settings.backoff_ms

    def _delay_ms(self) -> int:
        """`log.cleaner.io.max.bytes.per.second`: what was read too fast is waited for."""
        throttle_ms = self._bytes_read * 1_000 / self._settings.bytes_per_second_max
        return max(SLICE_INTERVAL_MS, int(throttle_ms))

    def _must_abandon(self) -> bool:
        log = self._log
        if log is None:
            return False
        return (
            log.failed is not None or not log.config.compact or log.files.removals != self._removals
        )

    def _abandon(self) -> None:
        """What the round knows may be wrong; a swap that a truncation met is settled already."""
        assert self._work is not None and self._log is not None
        log, self._work, self._log = self._log, None, None
        if log.failed is None and log.files.swap is not None:
            log.files.swap.settle_now()

    def _give_up(self, reason: str) -> None:
        assert self._log is not None, reason
        self._mark_uncleanable(self._log, reason)
        self._abandon()

    def _mark_uncleanable(self, log: Log, reason: str) -> None:
        log.uncleanable = reason
        self._trace.emit(events.LogUncleanable(partition=str(log.topic_partition), reason=reason))

    # One round.

    def _round(self, wall_ms: int) -> Work:
        """Find the dirtiest log that is due, and clean it."""
        chosen: LogToClean | None = None
        for log in list(self._logs()):
            if not log.config.compact:
                continue
            yield 1 + len(log.files.segments)
            if log.failed is not None or log.uncleanable is not None:
                continue
            try:
                found = log_to_clean(log, wall_ms)
            except CorruptBatch as error:
                self._mark_uncleanable(log, str(error))
                continue
            if found.is_due and (chosen is None or found.dirty_ratio > chosen.dirty_ratio):
                chosen = found
        if chosen is None or chosen.log.failed is not None:
            return
        # While the others were looked at, the chosen one may have been truncated.
        chosen = log_to_clean(chosen.log, wall_ms)
        if chosen.dirty_bytes:
            self._log, self._removals = chosen.log, chosen.log.files.removals
            yield from self._clean(chosen, wall_ms)

    def _clean(self, chosen: LogToClean, wall_ms: int) -> Work:
        log = chosen.log
        keys = KeyOffsetMap(
            keys=chosen.end_offset - chosen.first_dirty_offset,
            memory_bytes=self._settings.map_bytes,
            load_factor=self._settings.map_load_factor,
        )
        yield from self._note_keys(chosen, keys)
        end_offset = keys.latest_offset + 1
        if end_offset <= chosen.first_dirty_offset:
            raise CorruptBatch(f"one batch has more than {keys.keys_max} keys")
        segments = [each for each in log.files.segments if each.base_offset < end_offset]
        following = log.files.segments[len(segments)].base_offset
        bytes_before = sum(segment.file.size_bytes for segment in segments)
        bytes_after = 0
        batch_filter = BatchFilter(
            keys=keys,
            producers=log.producers,
            transactions=CleanedTransactions(),
            wall_ms=wall_ms,
            delete_retention_ms=log.config.delete_retention_ms,
        )
        for group in groups(segments, end_offset=following, config=log.config):
            swap = SegmentSwap(
                log.files, group, index_interval_bytes=log.config.index_interval_bytes
            )
            yield from self._write_group(log, group, swap, batch_filter)
            bytes_after += swap.size_bytes
            yield from _exchange(swap)
        log.cleaned_end_offset = end_offset
        if log.keeper is not None:
            log.keeper.on_log_cleaned(log)
        self._trace.emit(
            events.LogCleaned(
                partition=str(log.topic_partition),
                from_offset=chosen.first_dirty_offset,
                to_offset=end_offset,
                bytes_before=bytes_before,
                bytes_after=bytes_after,
                keys=keys.count,
            )
        )

    def _note_keys(self, chosen: LogToClean, keys: KeyOffsetMap) -> Work:
        """Fill the map from the dirty part, as far as its keys fit."""
        log, start_offset = chosen.log, chosen.first_dirty_offset
        segments = log.files.segments
        transactions = CleanedTransactions()
        keys.latest_offset = start_offset - 1
        for at in range(log.files.position_in_list(start_offset), len(segments) - 1):
            segment, segment_end = segments[at], segments[at + 1].base_offset
            if segment_end > chosen.end_offset:
                return
            transactions.add_aborted(_aborted_of(log, segment, segment_end))
            position = segment.position_past_damage(start_offset)
            for data, header, _ in self._batches(segment, position, segment_end):
                yield 1 + len(data) // WORK_BYTES
                if not crc_is_valid(data, 0, header):
                    raise CorruptBatch(f"wrong checksum at offset {header.base_offset}")
                if header.is_control:
                    transactions.on_marker(header, end_marker_of(data, header))
                elif not transactions.on_data(header):
                    is_whole = yield from _note_keys_of(data, header, keys, start_offset)
                    if not is_whole:
                        return
                keys.latest_offset = header.end_offset - 1
            keys.latest_offset = segment_end - 1

    def _write_group(
        self, log: Log, group: list[Segment], swap: SegmentSwap, batch_filter: BatchFilter
    ) -> Work:
        filled = [segment for segment in group if segment.file.size_bytes]
        for segment in filled:
            end_offset = log.files.segments[log.files.segments.index(segment) + 1].base_offset
            batch_filter.transactions.add_aborted(_aborted_of(log, segment, end_offset))
            for data, header, is_last in self._batches(segment, 0, end_offset):
                is_final = is_last and segment is filled[-1]
                yield from batch_filter.run(data, header, is_final=is_final)
                if batch_filter.kept is not None:
                    swap.append(batch_filter.kept)
                    yield len(batch_filter.kept) // WORK_BYTES
                if batch_filter.aborted is not None:
                    swap.add_aborted(batch_filter.aborted)

    def _batches(
        self, segment: Segment, position: int, end_offset: int
    ) -> Iterator[tuple[bytes, BatchHeader, bool]]:
        """Whole batches with their headers, and whether it is the final one of the file."""
        file, expected = segment.file, segment.base_offset
        window, window_position = b"", position
        while position < file.size_bytes:
            at = position - window_position
            if at + HEADER_BYTES > len(window):
                window, window_position, at = self._read(segment, position, 0), position, 0
            header = read_header(window, at)
            refuse_implausible(header, bytes_left=file.size_bytes - position)
            if header.base_offset < expected or header.end_offset > end_offset:
                # No checksum covers the base offset, so its order must do.
                raise CorruptBatch(f"offset {header.base_offset} after {expected - 1}")
            if at + header.size_bytes > len(window):
                window, window_position, at = (
                    self._read(segment, position, header.size_bytes), position, 0,
                )  # fmt: skip
            position += header.size_bytes
            expected = header.end_offset
            yield window[at : at + header.size_bytes], header, position == file.size_bytes

    def _read(self, segment: Segment, position: int, bytes_min: int) -> bytes:
        data = segment.file.read(position, max(self._settings.read_bytes, bytes_min, HEADER_BYTES))
        self._bytes_read += len(data)
        return data


def _note_keys_of(
    data: bytes, header: BatchHeader, keys: KeyOffsetMap, start_offset: int
) -> Generator[int, None, bool]:
    """False if the map got full on the way. What was noted of the batch does no harm then:
    records behind `latest_offset` all stay, so the newer one that a noted key points at is kept.
    """
    for record in packed_records(data):
        offset = header.base_offset + record.offset_delta
        if record.key is not None and offset >= start_offset:
            if keys.is_full:
                return False
            keys.put(record.key, offset)
        yield 1
    return True


def _exchange(swap: SegmentSwap) -> Work:
    while not swap.is_over:
        swap.advance()
        yield 1
        while not (swap.is_synced or swap.is_over):
            yield _WAITING


def _aborted_of(log: Log, segment: Segment, end_offset: int) -> list[AbortedTransaction]:
    segments = log.files.segments[log.files.segments.index(segment) :]
    return log.files.aborted.find(
        (each.base_offset for each in segments),
        start_offset=segment.base_offset,
        end_offset=end_offset,
    )
