"""One cleaned segment takes the place of those it was made from, whatever crashes in between.

The names tell how far it is; each step is durable before the next begins:

1. `.cleaned`: the new files are being written. A restart removes them.
2. `.swap`: they are complete. From here on a restart finishes the swap: the `.log.swap` file, once
   there, *is* the log of its offsets.
3. `.deleted`: the old segments lose their names, all of them.
4. The new indexes get their final names, then the new log file does.

If the old names went in the same step in which the new one comes, a power loss could keep the
new segment and bring back an old one whose offsets it covers: two truths for one offset.
"""

from __future__ import annotations

from enum import Enum

from tidelog.core.formats import file_names
from tidelog.core.model.trace import Trace
from tidelog.core.storage import aborted, events, offset_index, time_index
from tidelog.core.storage.disk import Disk, File
from tidelog.core.storage.log_files import LogFiles
from tidelog.core.storage.producers import AbortedTransaction
from tidelog.core.storage.segment import Segment
from tidelog.core.wire.record_batch import CorruptBatch, read_header

BESIDE_LOG = (file_names.OFFSET_INDEX, file_names.TIME_INDEX, file_names.ABORTED_INDEX)


class SwapStep(Enum):
    WRITING = "writing"
    FLUSHING = "flushing"
    NAMED_SWAP = "named .swap"
    OLD_RETIRED = "old segments retired"
    INDEXES_NAMED = "indexes named"
    LOG_NAMED = "log named"
    DONE = "done"
    ABORTED = "aborted"


class SegmentSwap:
    """The making of one segment out of several, and the exchange. Registered with its log's files.

    Whoever is about to cut or delete segments of the log calls `settle_now` first.
    """

    def __init__(self, files: LogFiles, old: list[Segment], *, index_interval_bytes: int) -> None:
        assert files.swap is None, files.directory
        self._files = files
        self._disk: Disk = files.disk
        self._old = old
        self._index_interval_bytes = index_interval_bytes
        self._base_offset = old[0].base_offset
        self.step = SwapStep.WRITING
        self.is_synced = False
        """Whether what the step asked for is durable."""
        self._segment = self._begin_segment()
        self._aborted_file: File | None = None
        if any(files.aborted.file(segment.base_offset) is not None for segment in old):
            # Even if it stays empty: it must replace the old one, whichever names survive.
            self._aborted_file = self._disk.open(self._fresh_path(file_names.ABORTED_INDEX))
        files.swap = self

    @property
    def size_bytes(self) -> int:
        return self._segment.file.size_bytes

    @property
    def is_over(self) -> bool:
        return self.step in (SwapStep.DONE, SwapStep.ABORTED)

    # Writing.

    def append(self, batch: bytes | bytearray) -> None:
        header = read_header(batch)
        segment = self._segment
        position = segment.file.size_bytes
        segment.file.append(batch)
        segment.note_batch(
            position=position,
            size_bytes=len(batch),
            end_offset=header.end_offset,
            max_timestamp_ms=header.max_timestamp_ms,
            index_interval_bytes=self._index_interval_bytes,
        )

    def add_aborted(self, entry: AbortedTransaction) -> None:
        if self._aborted_file is None:
            self._aborted_file = self._disk.open(self._fresh_path(file_names.ABORTED_INDEX))
        self._aborted_file.append(aborted.encode(entry))

    def _begin_segment(self) -> Segment:
        segment = Segment(
            disk=self._disk,
            directory=self._files.directory,
            base_offset=self._base_offset,
            file=self._disk.open(self._fresh_path(file_names.LOG)),
            offsets=offset_index.new(self._disk, self._fresh_path(file_names.OFFSET_INDEX)),
            times=time_index.new(self._disk, self._fresh_path(file_names.TIME_INDEX)),
            created_ms=self._old[-1].created_ms,
        )
        segment.timestamps_known = True
        return segment

    def _fresh_path(self, suffix: str) -> str:
        """Nothing of an earlier, abandoned round is left there."""
        path = self._path(suffix) + file_names.CLEANED
        if self._disk.exists(path):
            self._disk.open(path).remove()
        return path

    # The exchange.

    def advance(self) -> None:
        """The next step, once `is_synced` says that the one before is durable."""
        if self.step is SwapStep.WRITING:
            self._flush()
        elif self.step is SwapStep.FLUSHING:
            self._name(file_names.SWAP)
            self.step = SwapStep.NAMED_SWAP
        elif self.step is SwapStep.NAMED_SWAP:
            self._install()
            self.step = SwapStep.OLD_RETIRED
        elif self.step is SwapStep.OLD_RETIRED:
            self._name_indexes("")
            self.step = SwapStep.INDEXES_NAMED
        elif self.step is SwapStep.INDEXES_NAMED:
            self._segment.file.rename(self._path(file_names.LOG))
            self.step = SwapStep.LOG_NAMED
        elif self.step is SwapStep.LOG_NAMED:
            self._finish()
            return
        self._files.names_changed()
        self._request_sync()

    def on_synced(self, file: File, size_bytes: int) -> None:
        if file is self._segment.file:
            self.is_synced = True

    def settle_now(self) -> None:
        """Before segments are cut or deleted: give up, or finish what is decided; blocking.

        1. Segments 0 and 50 were made into one, named `.swap`, not durably. The log is
           truncated to 60, durably.
        2. The power fails and keeps the `.swap`: finishing it would bring the cut records back.
        """
        if self.step in (SwapStep.WRITING, SwapStep.FLUSHING, SwapStep.NAMED_SWAP):
            for file in self._new_files():
                file.remove()
            self._disk.sync_directory_now(self._files.directory)
            self.step = SwapStep.ABORTED
            self._files.swap = None
            return
        while not self.is_over:
            self._disk.sync_directory_now(self._files.directory)
            self.advance()

    def _flush(self) -> None:
        self._segment.become_inactive()
        self._segment.offsets.sync()
        self._segment.times.sync()
        if self._aborted_file is not None:
            self._aborted_file.sync()
        self._segment.file.owner = self
        self.step = SwapStep.FLUSHING

    def _request_sync(self) -> None:
        """Names first: syncs are done in order, so the file's is the sign for all."""
        self.is_synced = False
        self._disk.sync_directory(self._files.directory)
        self._segment.file.sync()

    def _install(self) -> None:
        self._segment.synced_bytes = self._segment.file.size_bytes
        self._files.replace_segments(self._old, self._segment, self._aborted_file)

    def _finish(self) -> None:
        self.step = SwapStep.DONE
        self._files.swap = None
        self._files.own(self._segment)

    def _name(self, suffix: str) -> None:
        self._name_indexes(suffix)
        self._segment.file.rename(self._path(file_names.LOG) + suffix)

    def _name_indexes(self, suffix: str) -> None:
        self._segment.offsets.rename(self._path(file_names.OFFSET_INDEX) + suffix)
        self._segment.times.rename(self._path(file_names.TIME_INDEX) + suffix)
        if self._aborted_file is not None:
            self._aborted_file.rename(self._path(file_names.ABORTED_INDEX) + suffix)

    def _new_files(self) -> list[File]:
        found = [self._segment.file, self._aborted_file]
        found += [self._segment.offsets.file_or_none(), self._segment.times.file_or_none()]
        return [file for file in found if file is not None]

    def _path(self, suffix: str) -> str:
        return file_names.offset_file(self._files.directory, self._base_offset, suffix)


def finish_swaps(disk: Disk, directory: str, *, trace: Trace) -> bool:
    """At a start: complete every swap that was decided; whether there was one."""
    names = disk.list_names(directory)
    swapped = [file_names.offset_of(name, file_names.LOG + file_names.SWAP) for name in names]
    # An empty one is none of ours: a cleaned segment has one batch at least.
    bases = sorted(
        base
        for base in swapped
        if base is not None and disk.open(_swap_path(directory, base, file_names.LOG)).size_bytes
    )
    for base_offset in bases:
        _finish_swap(disk, directory, base_offset)
        path = file_names.offset_file(directory, base_offset, file_names.LOG)
        trace.emit(events.SwapFinished(path=path))
    return bool(bases)


def _finish_swap(disk: Disk, directory: str, base_offset: int) -> None:
    """The same order as above; what was done before a crash is found done."""
    swap = disk.open(_swap_path(directory, base_offset, file_names.LOG))
    end_offset = _end_offset_of(disk, directory, base_offset, swap)
    for name in disk.list_names(directory):
        old = file_names.offset_of(name, file_names.LOG)
        if old is not None and base_offset <= old < end_offset:
            _remove_old(disk, directory, old, keeps_snapshot=old == base_offset)
    disk.sync_directory_now(directory)
    for suffix in BESIDE_LOG:
        final = file_names.offset_file(directory, base_offset, suffix)
        for unfinished in (file_names.SWAP, file_names.CLEANED):
            if disk.exists(final + unfinished):
                disk.open(final + unfinished).rename(final)
                break
    disk.sync_directory_now(directory)
    swap.rename(file_names.offset_file(directory, base_offset, file_names.LOG))
    disk.sync_directory_now(directory)


def _remove_old(disk: Disk, directory: str, base_offset: int, *, keeps_snapshot: bool) -> None:
    """The log file last: while it is there, what stands beside it is known to be old, too."""
    suffixes = BESIDE_LOG if keeps_snapshot else (*BESIDE_LOG, file_names.SNAPSHOT)
    for suffix in suffixes:
        path = file_names.offset_file(directory, base_offset, suffix)
        if disk.exists(path):
            disk.open(path).remove()
    disk.open(file_names.offset_file(directory, base_offset, file_names.LOG)).remove()


def _end_offset_of(disk: Disk, directory: str, base_offset: int, swap: File) -> int:
    """Where the segment ends; it begins, at least, if the medium damaged its end."""
    path = _swap_path(directory, base_offset, file_names.OFFSET_INDEX)
    segment = Segment(
        disk=disk,
        directory=directory,
        base_offset=base_offset,
        file=swap,
        offsets=offset_index.existing(disk, path),
        times=time_index.existing(disk, path),
        created_ms=None,
    )
    try:
        return max(segment.read_end_offset(), base_offset + 1)
    except CorruptBatch:
        return base_offset + 1


def _swap_path(directory: str, base_offset: int, suffix: str) -> str:
    return file_names.offset_file(directory, base_offset, suffix) + file_names.SWAP
