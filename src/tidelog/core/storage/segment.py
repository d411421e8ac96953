"""One segment: a run of batches in a file, with its indexes. Only the active one grows.

A segment that was cut by a truncation is never appended to again (a new one begins), so that every
byte of a file is written at most once per run of the broker: a sync that was under way while the
file was cut can then not be mistaken for one of the bytes that came later.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.core.formats import file_names
from tidelog.core.model.limits import INT32_MAX, INT64_MAX
from tidelog.core.storage import offset_index, time_index
from tidelog.core.storage.batch_reader import headers
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.damage import BatchOrDamage, sound_header, stretches
from tidelog.core.storage.dense_tail import DenseTail
from tidelog.core.storage.disk import Disk, File
from tidelog.core.storage.sparse_index import SparseIndex
from tidelog.core.wire.record_batch import BatchHeader, CorruptBatch

SEGMENT_BYTES_MAX = INT32_MAX
"""Positions in an offset index are 32 bits wide."""
_INDEX_INTERVAL_BYTES = 4096
"""Kafka's default, for an index that is rebuilt because it was found to lie."""
_ENTRIES_TRIED_MAX = 4
"""So many index entries may be wrong, or point at damage, before a walk begins at the start."""


# Size: one class; its file, indexes, timestamps and finding of offsets change together.
class Segment:
    """Invariant: every batch in the file has offsets from `base_offset` on, in growing order."""

    __slots__ = (
        "base_offset",
        "bytes_since_index",
        "created_ms",
        "directory",
        "disk",
        "file",
        "first_timestamp_ms",
        "largest_timestamp_ms",
        "largest_timestamp_offset",
        "offsets",
        "synced_bytes",
        "tail",
        "times",
        "timestamps_known",
    )

    def __init__(
        self,
        *,
        disk: Disk,
        directory: str,
        base_offset: int,
        file: File,
        offsets: SparseIndex,
        times: SparseIndex,
        created_ms: int | None,
    ) -> None:
        self.disk = disk
        self.directory = directory
        self.base_offset = base_offset
        self.file = file
        self.offsets = offsets
        self.times = times
        self.created_ms = created_ms
        self.first_timestamp_ms: int | None = None
        """The largest timestamp of the first batch: the segment's age is counted from it."""
        self.largest_timestamp_ms: int | None = None
        self.largest_timestamp_offset = base_offset
        """The final offset of the batch that brought the largest timestamp."""
        self.timestamps_known = False
        """Whether the two fields above are of this segment, or must be read first."""
        self.bytes_since_index = 0
        self.synced_bytes = 0
        self.tail: DenseTail | None = None

    @classmethod
    def begin(
        cls, *, disk: Disk, directory: str, base_offset: int, created_ms: int | None
    ) -> Segment:
        """A new, empty segment; files of that name from another life are removed first."""
        for suffix in (
            file_names.LOG,
            file_names.OFFSET_INDEX,
            file_names.TIME_INDEX,
            file_names.ABORTED_INDEX,
        ):
            path = file_names.offset_file(directory, base_offset, suffix)
            if disk.exists(path):
                disk.open(path).remove()
        segment = cls(
            disk=disk,
            directory=directory,
            base_offset=base_offset,
            file=disk.open(file_names.offset_file(directory, base_offset, file_names.LOG)),
            offsets=offset_index.new(disk, _path(directory, base_offset, file_names.OFFSET_INDEX)),
            times=time_index.new(disk, _path(directory, base_offset, file_names.TIME_INDEX)),
            created_ms=created_ms,
        )
        segment.tail = DenseTail(base_offset)
        segment.timestamps_known = True
        return segment

    @classmethod
    def existing(
        cls, *, disk: Disk, directory: str, base_offset: int, created_ms: int | None
    ) -> Segment:
        """A segment whose log file is there; its indexes are opened when they are needed."""
        return cls(
            disk=disk,
            directory=directory,
            base_offset=base_offset,
            file=disk.open(_path(directory, base_offset, file_names.LOG)),
            offsets=offset_index.existing(
                disk, _path(directory, base_offset, file_names.OFFSET_INDEX)
            ),
            times=time_index.existing(disk, _path(directory, base_offset, file_names.TIME_INDEX)),
            created_ms=created_ms,
        )

    # Writing.

    def note_batch(
        self,
        *,
        position: int,
        size_bytes: int,
        end_offset: int,
        max_timestamp_ms: int,
        index_interval_bytes: int,
    ) -> None:
        """A batch was written at `position`: remember where, and index it now and then."""
        self._note_timestamp(max_timestamp_ms, end_offset)
        if position == 0:
            self.first_timestamp_ms = max_timestamp_ms
        if self.bytes_since_index > index_interval_bytes:
            self.offsets.append(end_offset - 1 - self.base_offset, position)
            self.index_largest_timestamp()
            self.bytes_since_index = 0
        self.bytes_since_index += size_bytes
        tail = self.tail
        if tail is not None:
            tail.add(position=position, end_offset=end_offset)

    def _note_timestamp(self, max_timestamp_ms: int, end_offset: int) -> None:
        if not self.timestamps_known:
            self.read_largest_timestamp()
        largest_ms = self.largest_timestamp_ms
        if max_timestamp_ms >= 0 and (largest_ms is None or max_timestamp_ms > largest_ms):
            self.largest_timestamp_ms = max_timestamp_ms
            self.largest_timestamp_offset = end_offset - 1

    def index_largest_timestamp(self) -> None:
        if self.largest_timestamp_ms is not None:
            relative = self.largest_timestamp_offset - self.base_offset
            time_index.add(self.times, self.largest_timestamp_ms, relative)

    def roll_reason(
        self, *, size_bytes: int, end_offset: int, max_timestamp_ms: int, wall_ms: int,
        config: LogConfig, jitter_ms: int,
    ) -> str | None:  # fmt: skip
        """Why a batch may not go into this segment any more; None if it may."""
        held_bytes = self.file.size_bytes
        if held_bytes + size_bytes > config.segment_bytes:
            return "size"
        if held_bytes and self._age_ms(max_timestamp_ms, wall_ms) > config.segment_ms - jitter_ms:
            return "time"
        if end_offset - 1 - self.base_offset > INT32_MAX:
            return "offsets"
        if self.bytes_since_index > config.index_interval_bytes:
            if offset_index.is_full(self.offsets, index_bytes_max=config.segment_index_bytes):
                return "offset index full"
            if time_index.is_full(self.times, index_bytes_max=config.segment_index_bytes):
                return "time index full"
        return None

    def become_inactive(self) -> None:
        """Write the indexes out and let go of everything that only an active segment needs."""
        self.read_largest_timestamp()
        self.index_largest_timestamp()
        self.offsets.release()
        self.times.release()
        self.tail = None

    def close(self, index_interval_bytes: int) -> None:
        """At a clean stop. So small a segment has nothing to index, and gets no files for it.

        If it has them, they must be durable, too:

        1. Recovery cuts a segment of 7,648 bytes at 1,618 and empties its indexes. The broker is
           stopped cleanly.
        2. The power fails and brings the old index back. Its final entry points behind the end of
           the file, and the log would seem to end where the segment begins.
        """
        if self.file.size_bytes > index_interval_bytes or len(self.offsets):
            self.become_inactive()
        for index in (self.offsets, self.times):
            if index.file_or_none() is not None:
                index.sync_now()

    def cut(self, position: int) -> None:
        """Drop the batches from `position` on; the segment will not grow again."""
        self.tail = None
        final_offset = -1
        self.file.truncate(position)
        kept = [entry for entry in self.offsets.entries() if entry[1] < position]
        self.offsets.truncate(len(kept))
        self._forget_timestamps()
        for _, header in self.sound_batches(kept[-1][1] if kept else 0):
            final_offset = header.end_offset - 1 - self.base_offset
            self._note_timestamp(header.max_timestamp_ms, header.end_offset)
        times = [entry for entry in self.times.entries() if entry[1] <= final_offset]
        self.times.truncate(len(times))
        if times and (
            self.largest_timestamp_ms is None or times[-1][0] >= self.largest_timestamp_ms
        ):
            self.largest_timestamp_ms = times[-1][0]
            self.largest_timestamp_offset = self.base_offset + times[-1][1]
        self.synced_bytes = min(self.synced_bytes, position)
        self.become_inactive()

    # Reading.

    def position_of(self, offset: int) -> int:
        """Where the first batch begins that ends after `offset`; the end of the file if none.

        Reads only the headers between an index entry and that batch, none at the end of the log.
        CorruptBatch as soon as one of them cannot be true: then call `position_past_damage`.
        """
        tail = self.tail
        if tail is not None and offset >= tail.start_offset:
            return tail.position_of(offset, file_bytes=self.file.size_bytes)
        return self._scan_for(offset, self.offsets.floor(offset - self.base_offset))

    def position_past_damage(
        self, offset: int, *, end_offset: int | None = None, refuse_damage: bool = False
    ) -> int:
        """The same where a header cannot be true: it hides no sound batch behind it (damage.py).

        `end_offset` is where this segment's offsets end, if the caller knows it. CorruptBatch only
        with `refuse_damage`, if the batch that holds `offset` is itself the damaged one.
        """
        try:
            return self.position_of(offset)
        except CorruptBatch:
            entry = self.offsets.floor(offset - self.base_offset)
            found = self._find_past_damage(offset, entry, end_offset)
        if found is None:
            return self.file.size_bytes
        if refuse_damage and found.header is None:
            raise CorruptBatch(f"damaged at {found.position}: offset {found.start_offset} on")
        return found.position

    def end_of_cut_at(self, offset: int) -> int | None:
        """Where the segment ends if every batch goes that ends after `offset`; None: none does.

        That is where the batch before them ends, be there a gap behind it or not: a log must not
        end with a gap, because the next start would find its end elsewhere.
        """
        tail = self.tail
        if tail is not None and offset >= tail.start_offset:
            offsets = tail.offsets_of_batch_at(offset)
            return None if offsets is None else offsets[0]
        entry = self.offsets.floor(offset - 1 - self.base_offset)
        position, end_before = self._sound_start(entry)
        for stretch in stretches(
            self.file, position, start_offset=end_before, base_offset=self.base_offset
        ):
            if stretch.end_offset > offset:
                return end_before
            end_before = stretch.end_offset
        return None

    def _scan_for(self, offset: int, entry: tuple[int, int] | None) -> int:
        """CorruptBatch as soon as one header contradicts another, or the index.

        What was appended without gaps never does: each batch continues the one before it, or ends
        where its index entry says, and has as many records as offsets.
        """
        expected, position = (self.base_offset, 0) if entry is None else (None, entry[1])
        for at, header in headers(self.file, position):
            count = header.last_offset_delta + 1
            if expected is None:
                assert entry is not None
                expected = self.base_offset + entry[0] + 1 - count
            if header.base_offset != expected or header.records_count != count:
                raise CorruptBatch(f"the batch at {at} contradicts what stands before it")
            expected += count
            if expected > offset:
                return at
        return self.file.size_bytes

    def _find_past_damage(
        self, offset: int, entry: tuple[int, int] | None, end_offset: int | None
    ) -> BatchOrDamage | None:
        """The batch or the damage that ends after `offset`. An index that lies is built anew."""
        position, start_offset = self._sound_start(entry)
        entry_was_right = entry is None
        found = None
        for stretch in stretches(
            self.file,
            position,
            start_offset=start_offset,
            base_offset=self.base_offset,
            end_offset=end_offset,
        ):
            entry_was_right |= entry is not None and stretch.position == entry[1]
            if stretch.end_offset > offset:
                found = stretch
                break
        if not entry_was_right:
            self.rebuild_indexes(_INDEX_INTERVAL_BYTES)
        return found

    def _sound_start(self, entry: tuple[int, int] | None) -> tuple[int, int]:
        """A position, and the offset of the batch there: of a sound batch not behind `entry`."""
        for _ in range(_ENTRIES_TRIED_MAX):
            if entry is None:
                break
            position, end_offset = entry[1], self.base_offset + entry[0] + 1
            header = sound_header(self.file, position)
            if header is not None and header.end_offset == end_offset:
                return position, header.base_offset
            entry = self.offsets.floor(entry[0] - 1)
        return 0, self.base_offset

    def sound_batches(
        self, position: int = 0, *, refuse_damage: bool = False
    ) -> Iterator[tuple[int, BatchHeader]]:
        """Positions and headers from a batch on; those whose headers cannot be true are left out.

        With `refuse_damage` they are CorruptBatch. The checksums are not checked: a batch with
        damaged records is among them.
        """
        expected = None if position else self.base_offset
        start_offset, met = expected, -1
        try:
            for at, header in headers(self.file, position):
                count = header.last_offset_delta + 1
                base_offset = header.base_offset
                if (
                    base_offset != expected and expected is not None
                ) or header.records_count != count:
                    break
                yield at, header
                position, start_offset, met = at, base_offset, at
                expected = base_offset + count
            else:
                return
        except CorruptBatch:
            pass
        for stretch in stretches(
            self.file, position, start_offset=start_offset, base_offset=self.base_offset
        ):
            if stretch.header is None and refuse_damage:
                raise CorruptBatch(f"damaged at {stretch.position}")
            if stretch.header is not None and stretch.position != met:
                yield stretch.position, stretch.header

    def rebuild_indexes(self, index_interval_bytes: int) -> None:
        """From the headers of the batches; their content is not judged here."""
        tail, self.tail = self.tail, None
        self.forget_batches()
        for position, header in self.sound_batches():
            self.note_batch(
                position=position,
                size_bytes=header.size_bytes,
                end_offset=header.end_offset,
                max_timestamp_ms=header.max_timestamp_ms,
                index_interval_bytes=index_interval_bytes,
            )
        self.index_largest_timestamp()
        self.tail = tail
        if tail is None:
            self.offsets.release()
            self.times.release()

    def forget_batches(self) -> None:
        """Nothing is known of the file's content any more."""
        self.offsets.start_anew()
        self.times.start_anew()
        self.first_timestamp_ms = None
        self._forget_timestamps()
        self.bytes_since_index = 0

    def _forget_timestamps(self) -> None:
        self.timestamps_known = True
        self.largest_timestamp_ms = None
        self.largest_timestamp_offset = self.base_offset

    def batch_bytes_at(self, position: int) -> int:
        """The size of the batch at `position`."""
        tail = self.tail
        if tail is not None and tail.positions and position >= tail.positions[0]:
            return tail.position_after(position, file_bytes=self.file.size_bytes) - position
        return self.header_at(position).size_bytes

    def header_at(self, position: int) -> BatchHeader:
        for _, header in headers(self.file, position, window_bytes=0):
            return header
        raise AssertionError(f"no batch at {position} of {self.file.path}")

    def read_end_offset(self) -> int:
        """One past the final offset in the file, found from the final index entry on.

        CorruptBatch if the batch at the end is damaged: only it could say so.
        """
        entry = self.offsets.final_entry()
        end_offset = self.base_offset
        if entry is not None and entry[1] >= self.file.size_bytes:
            entry = None  # of batches that were cut
        try:
            for _, header in headers(self.file, 0 if entry is None else entry[1]):
                if header.records_count != header.last_offset_delta + 1:
                    raise CorruptBatch(f"{header.records_count} records")
                if header.base_offset < end_offset:
                    raise CorruptBatch(f"offset {header.base_offset} after {end_offset - 1}")
                end_offset = header.end_offset
        except CorruptBatch:
            position, start_offset = self._sound_start(entry)
            *_, final = stretches(
                self.file, position, start_offset=start_offset, base_offset=self.base_offset
            )
            if final.header is None:
                raise
            end_offset = final.end_offset
        return end_offset

    def read_largest_timestamp(self) -> int | None:
        """None without any timestamp. Read once: from the time index, or from the batches."""
        if not self.timestamps_known:
            self._forget_timestamps()
            final = self.times.final_entry()
            if final is not None and final[0] >= 0:
                self.largest_timestamp_ms = final[0]
                self.largest_timestamp_offset = self.base_offset + final[1]
            elif final is None:
                for _, header in self.sound_batches():
                    self._note_timestamp(header.max_timestamp_ms, header.end_offset)
        return self.largest_timestamp_ms

    def confirm_largest_timestamp(self) -> int | None:
        """The same, by the batches: an index alone is no reason to delete records.

        1. All records of a segment are synced. It is rolled, and its time index gets a final entry.
        2. The power fails before the index is synced: the entry reads as timestamp 0.
        3. The segment lies below the recovery point and is not scanned. It would seem very old.

        If the batch of the final entry has its timestamp, only those behind it need be read.
        """
        final = self.times.final_entry()
        floor = None if final is None else self.offsets.floor(final[1])
        if final is not None and floor is not None:
            self._forget_timestamps()
            for _, header in self.sound_batches(floor[1]):
                found = (header.max_timestamp_ms, header.end_offset - 1 - self.base_offset)
                if self.largest_timestamp_ms is not None or found == final:
                    self._note_timestamp(header.max_timestamp_ms, header.end_offset)
            if self.largest_timestamp_ms is not None:
                return self.largest_timestamp_ms
        self._forget_timestamps()
        for _, header in self.sound_batches():
            self._note_timestamp(header.max_timestamp_ms, header.end_offset)
        return self.largest_timestamp_ms

    def first_batch(self) -> BatchHeader | None:
        for _, header in headers(self.file, 0, window_bytes=0):
            return header
        return None

    def check(self) -> None:
        assert self.synced_bytes <= self.file.size_bytes, self.file.path
        self.offsets.check()
        self.times.check()
        if self.tail is not None:
            self.tail.check()

    def complaint_about_indexes(self, *, end_offset: int) -> str | None:
        """Why the indexes of this segment cannot be used; None if nothing speaks against it."""
        span = end_offset - self.base_offset
        if not self.file.size_bytes:
            return None
        complaint = self.offsets.complaint(keys_end=span, values_end=self.file.size_bytes)
        if complaint is not None:
            return f"offset index {complaint}"
        complaint = self.times.complaint(keys_end=INT64_MAX, values_end=span)
        return None if complaint is None else f"time index {complaint}"

    def _age_ms(self, max_timestamp_ms: int, wall_ms: int) -> int:
        """By the records' own clock; by ours if they carry no timestamps."""
        first_ms = self.first_timestamp_ms
        if first_ms is None:
            first = self.first_batch()
            first_ms = self.first_timestamp_ms = -1 if first is None else first.max_timestamp_ms
        return max_timestamp_ms - first_ms if first_ms >= 0 else wall_ms - self.begun_ms(wall_ms)

    def begun_ms(self, wall_ms: int) -> int:
        """When this segment was begun, or first seen by a caller with a clock."""
        if self.created_ms is None:
            self.created_ms = wall_ms
        return self.created_ms


def _path(directory: str, base_offset: int, suffix: str) -> str:
    return file_names.offset_file(directory, base_offset, suffix)
