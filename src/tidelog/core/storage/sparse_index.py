"""A sparse index: sorted pairs of numbers in a file, some of them in memory.

The index of the active segment lives in memory and is written out in chunks; that of an older
segment stays in its file and is searched there, so that idle partitions cost nothing. What is not
written yet is lost in a crash, which is no harm: after a crash indexes of unsynced segments are
rebuilt from their batches, never trusted.
"""

from __future__ import annotations

from array import array
from bisect import bisect_right
from struct import Struct

from tidelog.core.storage.disk import Disk, File

_UNWRITTEN_ENTRIES_MAX = 64


class SparseIndex:
    """Pairs (key, value); keys grow strictly, values never shrink.

    Invariant: `_keys` is None (all entries are in the file) or holds every entry, of which the
    first `_written` are in the file.
    """

    __slots__ = ("_disk", "_file", "_is_dirty", "_keys", "_values", "_written", "entry", "path")

    def __init__(self, disk: Disk, path: str, entry: Struct) -> None:
        self._disk = disk
        self.path = path
        self.entry = entry
        self._file: File | None = None
        self._keys: array[int] | None = None
        self._values: array[int] | None = None
        self._written = 0
        self._is_dirty = False
        """Written since it was known to be durable."""

    @classmethod
    def new(cls, disk: Disk, path: str, entry: Struct) -> SparseIndex:
        """For a segment that begins: empty, its file not made yet."""
        index = cls(disk, path, entry)
        index.start_anew()
        return index

    def start_anew(self) -> None:
        """Forget every entry: the index of this segment is built from nothing."""
        self._keys = array("q")
        self._values = array("q")
        self._written = 0
        if self._file is not None or self._disk.exists(self.path):
            self._open().truncate(0)
            self._is_dirty = True

    def __len__(self) -> int:
        return self._entries_in_file() if self._keys is None else len(self._keys)

    def append(self, key: int, value: int) -> None:
        keys, values = self._loaded()
        assert not keys or (keys[-1] < key and values[-1] <= value), (self.path, key, value)
        keys.append(key)
        values.append(value)
        if len(keys) - self._written >= _UNWRITTEN_ENTRIES_MAX:
            self.write_out()

    def floor(self, key: int) -> tuple[int, int] | None:
        """The entry with the largest key that is not larger than `key`."""
        if self._keys is None or self._values is None:
            return self._floor_in_file(key)
        at = bisect_right(self._keys, key) - 1
        return None if at < 0 else (self._keys[at], self._values[at])

    def final_entry(self) -> tuple[int, int] | None:
        """The entry with the largest key."""
        if self._keys is None or self._values is None:
            count = self._entries_in_file()
            return self._entry_in_file(count - 1) if count else None
        return (self._keys[-1], self._values[-1]) if self._keys else None

    def entries(self) -> list[tuple[int, int]]:
        keys, values = self._loaded()
        return list(zip(keys, values, strict=True))

    def truncate(self, count: int) -> None:
        """Keep only the first `count` entries."""
        keys, values = self._loaded()
        del keys[count:], values[count:]
        if count < self._written:
            self._open().truncate(count * self.entry.size)
            self._is_dirty = True
            self._written = count

    def write_out(self) -> None:
        """Bring the file up to date; makes it if it is not there."""
        file = self._open()
        if self._keys is None or self._values is None:
            return
        pack = self.entry.pack
        fresh = zip(self._keys[self._written :], self._values[self._written :], strict=True)
        packed = b"".join([pack(key, value) for key, value in fresh])
        if packed:
            self._is_dirty = True
            file.append(packed)
        self._written = len(self._keys)

    def rename(self, path: str) -> None:
        self._open().rename(path)
        self.path = path

    def release(self) -> None:
        """The segment is not active any more: keep nothing in memory."""
        self.write_out()
        self._keys = self._values = None
        if self._file is not None:
            self._file.close()

    def sync(self) -> None:
        """Requested before the log file's sync: whoever trusts the segment trusts its index."""
        self.write_out()
        self._open().sync()

    def sync_now(self) -> None:
        self.write_out()
        if self._is_dirty:
            self._open().sync_now()
            self._is_dirty = False

    def file_or_none(self) -> File | None:
        """The file if there is one."""
        if self._file is None and self._disk.exists(self.path):
            self._open()
        return self._file

    def complaint(self, *, keys_end: int, values_end: int) -> str | None:
        """What is wrong with the file, seen from outside; entries must lie below the given ends."""
        if not self._disk.exists(self.path):
            return "missing"
        if self._open().size_bytes % self.entry.size:
            return "cut in the middle of an entry"
        final = self.final_entry()
        if final is not None and not (0 <= final[0] < keys_end and 0 <= final[1] < values_end):
            return f"entry {final} lies outside of its segment"
        return None

    def check(self) -> None:
        if self._keys is None or self._values is None:
            return
        assert len(self._keys) == len(self._values) >= self._written, self.path
        for at in range(1, len(self._keys)):
            assert self._keys[at - 1] < self._keys[at], (self.path, at)
            assert self._values[at - 1] <= self._values[at], (self.path, at)

    def _open(self) -> File:
        if self._file is None:
            self._file = self._disk.open(self.path)
        return self._file

    def _loaded(self) -> tuple[array[int], array[int]]:
        if self._keys is None or self._values is None:
            count = len(self)
            data = self._open().read(0, count * self.entry.size) if count else b""
            pairs = list(self.entry.iter_unpack(data))
            self._keys = array("q", [key for key, _ in pairs])
            self._values = array("q", [value for _, value in pairs])
            self._written = count
            self._drop_padding()
        return self._keys, self._values

    def _drop_padding(self) -> None:
        """Further entries must go where the padding begins."""
        if self._file is not None and self._file.size_bytes > self._written * self.entry.size:
            self._file.truncate(self._written * self.entry.size)

    def _floor_in_file(self, key: int) -> tuple[int, int] | None:
        low, high = 0, self._entries_in_file()
        found = None
        while low < high:
            middle = (low + high) // 2
            entry = self._entry_in_file(middle)
            if entry[0] <= key:
                found, low = entry, middle + 1
            else:
                high = middle
        return found

    def _entries_in_file(self) -> int:
        """Kafka preallocates an active segment's index with zeros: these are no entries."""
        file = self.file_or_none()
        if file is None:
            return 0
        count = file.size_bytes // self.entry.size
        if count == 0 or any(self._entry_in_file(count - 1)):
            return count
        low, high = 0, count - 1
        while low < high:
            middle = (low + high) // 2
            if any(self._entry_in_file(middle)):
                low = middle + 1
            else:
                high = middle
        return low

    def _entry_in_file(self, at: int) -> tuple[int, int]:
        size = self.entry.size
        key, value = self.entry.unpack(self._open().read(at * size, size))
        return key, value
