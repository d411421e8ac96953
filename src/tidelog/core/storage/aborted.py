"""The index of aborted transactions: what a read_committed reader must skip, in `.txnindex` files.

One file per segment, made only when a transaction is aborted whose marker lies in that segment.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from struct import Struct

from tidelog.core.formats import file_names
from tidelog.core.storage.disk import Disk, File
from tidelog.core.storage.producers import AbortedTransaction

_VERSION = 0
_ENTRY = Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size


def encode(aborted: AbortedTransaction) -> bytes:
    """One entry, as Kafka writes it."""
    return _ENTRY.pack(
        _VERSION,
        aborted.producer_id,
        aborted.first_offset,
        aborted.end_offset - 1,
        aborted.last_stable_offset,
    )


class AbortedIndex:
    """The aborted transactions of one partition, file by file."""

    __slots__ = ("_directory", "_disk", "_files")

    def __init__(self, disk: Disk, directory: str) -> None:
        self._disk = disk
        self._directory = directory
        self._files: dict[int, File] = {}
        """By the base offset of their segment."""

    @classmethod
    def existing(cls, disk: Disk, directory: str, base_offsets: Iterable[int]) -> AbortedIndex:
        index = cls(disk, directory)
        for base_offset in base_offsets:
            index._files[base_offset] = disk.open(index.path(base_offset))
        return index

    def path(self, base_offset: int) -> str:
        return file_names.offset_file(self._directory, base_offset, file_names.ABORTED_INDEX)

    def moved_to(self, directory: str) -> None:
        self._directory = directory

    def file(self, base_offset: int) -> File | None:
        return self._files.get(base_offset)

    def add(self, base_offset: int, aborted: AbortedTransaction) -> None:
        """Its marker lies in the segment of that base offset."""
        file = self._files.get(base_offset)
        if file is None:
            file = self._files[base_offset] = self._disk.open(self.path(base_offset))
        file.append(encode(aborted))

    def adopt(self, base_offset: int, file: File) -> None:
        """A cleaned segment brings its own file."""
        self._files[base_offset] = file

    def entries(self, base_offset: int) -> Iterator[AbortedTransaction]:
        """A cut entry at the end of the file is left out."""
        file = self._files.get(base_offset)
        if file is None:
            return
        size = file.size_bytes - file.size_bytes % ENTRY_BYTES
        for _, producer_id, first, marker, stable in _ENTRY.iter_unpack(file.read(0, size)):
            yield AbortedTransaction(producer_id, first, marker + 1, stable)

    def find(
        self, base_offsets: Iterable[int], *, start_offset: int, end_offset: int
    ) -> list[AbortedTransaction]:
        """Those that touch [start_offset, end_offset), in the order of their markers.

        `base_offsets` are the segments from the one of `start_offset` on. A transaction may reach
        across segments, so the search goes on until one says that all before its stable offset is
        decided.
        """
        found: list[AbortedTransaction] = []
        if not self._files:
            return found
        for base_offset in base_offsets:
            for aborted in self.entries(base_offset):
                if aborted.end_offset > start_offset and aborted.first_offset < end_offset:
                    found.append(aborted)
                if aborted.last_stable_offset >= end_offset:
                    return found
        return found

    def truncate(self, base_offset: int, end_offset: int) -> None:
        """Drop the entries of a segment whose marker is not before `end_offset`."""
        file = self._files.get(base_offset)
        if file is None:
            return
        kept = sum(1 for aborted in self.entries(base_offset) if aborted.end_offset <= end_offset)
        file.truncate(kept * ENTRY_BYTES)

    def forget(self, base_offset: int) -> File | None:
        """The segment goes away; its file is the caller's."""
        return self._files.pop(base_offset, None)
