"""The Disk port: all that storage needs of a file system.

Appending, reading, truncating and renaming are synchronous: they touch the page cache and cost a
microsecond. Durability is only *requested*: `File.sync` and `Disk.sync_directory` return at once;
the world carries requests out in the order they were made (per log directory, coalescing) and then
calls `Node.on_synced(file, size_bytes)`: the first `size_bytes` of the file are durable, and so is
every name whose directory's sync was requested before. A failed sync is final for its log directory
(`Node.on_sync_failed`): nothing is retried, because the kernel may have dropped the dirty pages
that it could not write.

What is durable after a power loss: bytes below a synced size, and names (creations, renames,
removals) below a synced directory. Everything else may or may not be there, in any combination.
A killed process alone loses nothing that was appended.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tidelog.core.model.exceptions import TidelogError


class DiskError(TidelogError):
    """A file operation failed: the log directory that holds `path` is no longer to be trusted."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class DiskFull(DiskError):
    """No space left. A part of the bytes may have been written."""


class SyncListener(Protocol):
    """The owner of a file, called when its bytes are durable."""

    def on_synced(self, file: File, size_bytes: int) -> None: ...


class File(Protocol):
    """One file. Descriptors come from a bounded pool and are the world's affair."""

    path: str
    """The current name; `rename` changes it."""
    size_bytes: int
    """As this process wrote it, synced or not."""
    owner: SyncListener | None
    """Set by whoever needs `on_synced`."""

    def append(self, *parts: bytes | bytearray | memoryview) -> None:
        """Write at the end; on DiskError an unknown part of the bytes may have been written."""

    def read(self, position: int, length: int) -> bytes:
        """Up to `length` bytes; fewer only at the end of the file."""

    def truncate(self, size_bytes: int) -> None: ...

    def rename(self, path: str) -> None:
        """Atomic; replaces whatever had that name."""

    def sync(self) -> None:
        """Request that all bytes written so far become durable; the node then informs the owner."""

    def sync_now(self) -> None:
        """Block until durable: only for start-up, shutdown and rare, small files."""

    def remove(self) -> None: ...

    def close(self) -> None:
        """Give the descriptor back; the next use opens it again."""


class Disk(Protocol):
    """A tree of directories and files, named by slash-separated paths.

    The empty path is the directory that relative paths start from.
    """

    def open(self, path: str) -> File:
        """An existing file, or a new empty one (its directory must exist)."""

    def exists(self, path: str) -> bool: ...

    def list_names(self, directory: str) -> list[str]:
        """The sorted names in a directory; empty if there is no such directory."""

    def is_directory(self, path: str) -> bool: ...

    def make_directory(self, path: str) -> None:
        """With its parents; no error if it is there."""

    def rename_directory(self, old: str, new: str) -> None:
        """Atomic. Open files below it keep working under their new path."""

    def remove_directory(self, path: str) -> None:
        """With everything below it; no error if it is not there."""

    def sync_directory(self, path: str) -> None:
        """Request that the names in this directory become durable, before all later requests."""

    def sync_directory_now(self, path: str) -> None: ...


class FileSlice(NamedTuple):
    """A run of bytes in a file that an answer carries without reading it into memory."""

    file: File
    position: int
    size_bytes: int


def read_slice(slice_: FileSlice) -> bytes:
    """The bytes themselves: for tools, tests and the simulator."""
    return slice_.file.read(slice_.position, slice_.size_bytes)
