"""The time index: from which offset to search for a timestamp.

An entry is the largest timestamp seen so far in the segment and the final offset, relative to the
segment's base, of the batch that brought it. A segment that is rolled or closed ends with the entry
of its largest timestamp.
"""

from __future__ import annotations

from struct import Struct

from tidelog.core.storage.disk import Disk
from tidelog.core.storage.sparse_index import SparseIndex

ENTRY = Struct(">qi")
ENTRY_BYTES = ENTRY.size


def existing(disk: Disk, path: str) -> SparseIndex:
    return SparseIndex(disk, path, ENTRY)


def new(disk: Disk, path: str) -> SparseIndex:
    return SparseIndex.new(disk, path, ENTRY)


def is_full(index: SparseIndex, *, index_bytes_max: int) -> bool:
    """One entry is kept free for the largest timestamp at the end."""
    return len(index) >= index_bytes_max // ENTRY_BYTES - 1


def add(index: SparseIndex, timestamp_ms: int, relative_offset: int) -> None:
    """An entry, unless a timestamp as large is there already."""
    final = index.final_entry()
    if final is None or timestamp_ms > final[0]:
        index.append(timestamp_ms, relative_offset)
