"""A disk that keeps the small files in memory and of segments only the size: writing is free.

So that a node can be driven in one process and what remains is its own time. Wishes for syncs are
kept until somebody asks for them.
"""

from __future__ import annotations

from tidelog.core.storage.disk import SyncListener

KEPT = "__cluster_metadata"
"""The one log that is read back."""


class NullFile:
    """Bytes in memory, or only their number."""

    def __init__(self, disk: NullDisk, path: str) -> None:
        self.path = path
        self.size_bytes = 0
        self.owner: SyncListener | None = None
        self._disk = disk
        self._bytes = bytearray()
        self._is_kept = KEPT in path or not path.endswith((".log", ".index", ".timeindex"))

    def append(self, *parts: bytes | bytearray | memoryview) -> None:
        for part in parts:
            self.size_bytes += len(part)
            if self._is_kept:
                self._bytes += part

    def read(self, position: int, length: int) -> bytes:
        return bytes(self._bytes[position : position + length])

    def truncate(self, size_bytes: int) -> None:
        del self._bytes[size_bytes:]
        self.size_bytes = size_bytes

    def rename(self, path: str) -> None:
        self._disk.files[path] = self._disk.files.pop(self.path)
        self.path = path

    def sync(self) -> None:
        self._disk.unsynced.append(self)

    def sync_now(self) -> None: ...

    def remove(self) -> None:
        self._disk.files.pop(self.path, None)

    def close(self) -> None: ...


class NullDisk:
    """A flat dictionary; a directory exists if it was made or has something below it."""

    def __init__(self) -> None:
        self.files: dict[str, NullFile] = {}
        self.unsynced: list[NullFile] = []
        self._directories: set[str] = set()

    def open(self, path: str) -> NullFile:
        if path not in self.files:
            self.files[path] = NullFile(self, path)
        return self.files[path]

    def exists(self, path: str) -> bool:
        return path in self.files or self.is_directory(path)

    def list_names(self, directory: str) -> list[str]:
        head = directory.rstrip("/") + "/"
        below = (path for path in (*self.files, *self._directories) if path.startswith(head))
        return sorted({path[len(head) :].split("/")[0] for path in below})

    def is_directory(self, path: str) -> bool:
        return path in self._directories or bool(self.list_names(path))

    def make_directory(self, path: str) -> None:
        self._directories.add(path)

    def rename_directory(self, old: str, new: str) -> None:
        raise NotImplementedError("nothing is deleted here")

    def remove_directory(self, path: str) -> None:
        raise NotImplementedError("nothing is deleted here")

    def sync_directory(self, path: str) -> None: ...

    def sync_directory_now(self, path: str) -> None: ...
