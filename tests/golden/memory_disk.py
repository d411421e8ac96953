"""A disk that is a dictionary: nothing fails, and sync wishes wait until they are granted."""

from __future__ import annotations

from tidelog.core.storage.disk import DiskError, File, SyncListener


class MemoryFile:
    """One file's bytes."""

    def __init__(self, disk: MemoryDisk, path: str, data: bytearray) -> None:
        self.path = path
        self.owner: SyncListener | None = None
        self._disk = disk
        self._data = data
        self.size_bytes = len(data)

    def append(self, *parts: bytes | bytearray | memoryview) -> None:
        for part in parts:
            self._data += part
        self.size_bytes = len(self._data)

    def read(self, position: int, length: int) -> bytes:
        return bytes(self._data[position : position + length])

    def truncate(self, size_bytes: int) -> None:
        del self._data[size_bytes:]
        self.size_bytes = len(self._data)

    def rename(self, path: str) -> None:
        self._disk.files[path] = self._disk.files.pop(self.path)
        self.path = path

    def sync(self) -> None:
        self._disk.wishes.append(self)

    def sync_now(self) -> None:
        pass

    def remove(self) -> None:
        self._disk.files.pop(self.path, None)

    def close(self) -> None:
        pass


class MemoryDisk:
    """Files by path; a directory is a name that ends there or a path below it."""

    def __init__(self) -> None:
        self.files: dict[str, bytearray] = {}
        self.wishes: list[MemoryFile] = []
        self._directories: set[str] = set()
        self._opened: list[MemoryFile] = []

    def open(self, path: str) -> File:
        if path.rpartition("/")[0] not in self._directories:
            raise DiskError(path, "no such directory")
        file = MemoryFile(self, path, self.files.setdefault(path, bytearray()))
        self._opened.append(file)
        return file

    def exists(self, path: str) -> bool:
        return path in self.files or path in self._directories

    def list_names(self, directory: str) -> list[str]:
        below = directory + "/"
        paths = (*self.files, *self._directories)
        return sorted({p[len(below) :].split("/")[0] for p in paths if p.startswith(below)})

    def is_directory(self, path: str) -> bool:
        return path in self._directories

    def make_directory(self, path: str) -> None:
        while path:
            self._directories.add(path)
            path = path.rpartition("/")[0]

    def rename_directory(self, old: str, new: str) -> None:
        def moved(path: str) -> str:
            inside = path == old or path.startswith(old + "/")
            return new + path[len(old) :] if inside else path

        self.files = {moved(path): data for path, data in self.files.items()}
        self._directories = {moved(path) for path in self._directories}
        for file in self._opened:
            file.path = moved(file.path)

    def remove_directory(self, path: str) -> None:
        below = path + "/"
        self.files = {p: data for p, data in self.files.items() if not p.startswith(below)}
        self._directories = {p for p in self._directories if p != path and not p.startswith(below)}

    def sync_directory(self, path: str) -> None:
        pass

    def sync_directory_now(self, path: str) -> None:
        pass
