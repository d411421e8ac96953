"""A checkpoint of offsets: one file of a log directory with one line per partition.

Written as a whole: a temporary file, synced, renamed over the old one, then the name synced.
Without waiting this takes two rounds of the sync thread; `on_durable` is called after the second.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.formats import file_names
from tidelog.core.formats.text_checkpoints import Offsets, decode_offsets, encode_offsets
from tidelog.core.model.ids import TopicPartition
from tidelog.core.storage.disk import Disk, DiskError, File


class OffsetCheckpoint:
    """Invariant: at most one write is under way, `_writing`; the next one waits in `_waiting`."""

    def __init__(
        self,
        disk: Disk,
        directory: str,
        name: str,
        *,
        on_durable: Callable[[Offsets], None],
        on_error: Callable[[DiskError], None],
    ) -> None:
        self._disk = disk
        self._directory = directory
        self._path = f"{directory}/{name}"
        self._on_durable = on_durable
        self._on_error = on_error
        self._file: File | None = None
        self._is_renamed = False
        self._writing: Offsets | None = None
        self._waiting: Offsets | None = None
        self.durable: Offsets = {}
        """What the file is known to say, or said at the start."""

    @property
    def path(self) -> str:
        return self._path

    def read(self) -> Offsets:
        """What the file says, durable now; CorruptCheckpoint if torn, nothing if missing."""
        if not self._disk.exists(self._path):
            return {}
        file = self._disk.open(self._path)
        self.durable = decode_offsets(file.read(0, file.size_bytes))
        file.sync_now()
        return dict(self.durable)

    def may_exceed(self, topic_partition: TopicPartition, offset: int) -> bool:
        """Whether the file may say more than `offset` for this partition, now or soon."""
        known = (self.durable, self._writing, self._waiting)
        return any(one is not None and one.get(topic_partition, 0) > offset for one in known)

    def write(self, offsets: Offsets) -> None:
        """Without waiting; a write that is under way is finished first."""
        if self._writing is not None:
            self._waiting = offsets
        elif offsets != self.durable:
            self._begin(offsets)

    def write_now(self, offsets: Offsets) -> None:
        """Block until it is durable."""
        if offsets == self.durable and self._writing is None:
            return
        self._writing = self._waiting = self._file = None
        file = self._write_temporary(offsets)
        file.sync_now()
        file.rename(self._path)
        self._disk.sync_directory_now(self._directory)
        self._finish(offsets)

    def on_synced(self, file: File, size_bytes: int) -> None:
        if file is not self._file or self._writing is None:
            return  # of a write that was overtaken by `write_now`
        try:
            self._go_on(file)
        except DiskError as error:
            self._on_error(error)

    def _go_on(self, file: File) -> None:
        if not self._is_renamed:
            file.rename(self._path)
            self._is_renamed = True
            self._disk.sync_directory(self._directory)
            file.sync()
            return
        assert self._writing is not None
        offsets, self._writing, self._file = self._writing, None, None
        self._finish(offsets)
        if self._waiting is not None:
            waiting, self._waiting = self._waiting, None
            self.write(waiting)

    def _begin(self, offsets: Offsets) -> None:
        self._writing = offsets
        self._is_renamed = False
        self._file = self._write_temporary(offsets)
        self._file.owner = self
        self._file.sync()

    def _write_temporary(self, offsets: Offsets) -> File:
        path = self._path + file_names.TEMPORARY
        if self._disk.exists(path):
            self._disk.open(path).remove()
        file = self._disk.open(path)
        file.append(encode_offsets(offsets))
        return file

    def _finish(self, offsets: Offsets) -> None:
        self.durable = offsets
        self._on_durable(offsets)
