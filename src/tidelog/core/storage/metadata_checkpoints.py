"""The files of the metadata's snapshots: Kafka's names, each file whole and durable or not there.

`<end offset>-<epoch>.checkpoint` stands for everything in the log before the end offset; the
epoch is that of the record before it. While one is written it has another name, and is removed by
the next start if it was not finished.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tidelog.core.storage.disk import Disk, DiskError, File
from tidelog.core.storage.durable_directory import make_directory

SUFFIX = ".checkpoint"
PART = ".checkpoint.part"
_OFFSET_DIGITS, _EPOCH_DIGITS = 20, 10


class CheckpointName(NamedTuple):
    end_offset: int
    leader_epoch: int


class MetadataCheckpoints:
    """Invariant: at most one file is being written without waiting for it."""

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._writing: _Writing | None = None

    def find(self) -> list[CheckpointName]:
        """The finished ones, oldest first; the unfinished ones go."""
        found = []
        for name in self._disk.list_names(self._directory):
            if name.endswith(PART):
                self._disk.open(f"{self._directory}/{name}").remove()
            elif (named := _parse(name)) is not None:
                found.append(named)
        return sorted(found)

    def open(self, name: CheckpointName) -> File:
        return self._disk.open(self._path(name))

    def remove(self, name: CheckpointName) -> None:
        self.open(name).remove()

    @property
    def is_writing(self) -> bool:
        return self._writing is not None

    def write(
        self,
        name: CheckpointName,
        content: bytes | bytearray,
        *,
        on_durable: Callable[[], None],
        on_error: Callable[[DiskError], None],
    ) -> None:
        """Without waiting: two syncs, of the content and then of the name."""
        assert self._writing is None, "one after the other"
        file = self._write_part(name, content)
        self._writing = _Writing(self, name, file, on_durable, on_error)
        file.owner = self._writing
        file.sync()

    def write_now(self, name: CheckpointName, content: bytes | bytearray) -> None:
        """Block until it is durable."""
        file = self._write_part(name, content)
        file.sync_now()
        file.rename(self._path(name))
        self._disk.sync_directory_now(self._directory)

    def _write_part(self, name: CheckpointName, content: bytes | bytearray) -> File:
        if not self._disk.is_directory(self._directory):
            make_directory(self._disk, self._directory)
        path = f"{self._directory}/{_format(name)}{PART}"
        if self._disk.exists(path):
            self._disk.open(path).remove()
        file = self._disk.open(path)
        file.append(content)
        return file

    def _path(self, name: CheckpointName) -> str:
        return f"{self._directory}/{_format(name)}{SUFFIX}"

    # For the one that is being written

    def give_its_name(self, writing: _Writing) -> None:
        writing.file.rename(self._path(writing.name))
        self._disk.sync_directory(self._directory)
        writing.file.sync()

    def finished(self, writing: _Writing) -> None:
        writing.file.owner = None
        self._writing = None


class _Writing:
    """A file on its way to the disk; the listener of its syncs."""

    def __init__(
        self,
        checkpoints: MetadataCheckpoints,
        name: CheckpointName,
        file: File,
        on_durable: Callable[[], None],
        on_error: Callable[[DiskError], None],
    ) -> None:
        self._checkpoints = checkpoints
        self.name = name
        self.file = file
        self._on_durable = on_durable
        self._on_error = on_error
        self._has_name = False

    def on_synced(self, file: File, size_bytes: int) -> None:
        try:
            if not self._has_name:
                self._has_name = True
                self._checkpoints.give_its_name(self)
                return
        except DiskError as error:
            self._on_error(error)
            return
        self._checkpoints.finished(self)
        self._on_durable()


def _format(name: CheckpointName) -> str:
    return f"{name.end_offset:0{_OFFSET_DIGITS}d}-{name.leader_epoch:0{_EPOCH_DIGITS}d}"


def _parse(name: str) -> CheckpointName | None:
    stem = name.removesuffix(SUFFIX)
    offset, dash, leader_epoch = stem.partition("-")
    is_one = (
        stem != name
        and dash == "-"
        and len(offset) == _OFFSET_DIGITS
        and len(leader_epoch) == _EPOCH_DIGITS
        and (offset + leader_epoch).isdecimal()
    )
    return CheckpointName(int(offset), int(leader_epoch)) if is_one else None
