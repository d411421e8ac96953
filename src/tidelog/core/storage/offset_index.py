"""The offset index: from which file position to search for an offset.

An entry is the final offset of some batch, relative to the segment's base, and the position of that
batch. One entry about every `index.interval.bytes`.
"""

from __future__ import annotations

from struct import Struct

from tidelog.core.storage.disk import Disk
from tidelog.core.storage.sparse_index import SparseIndex

ENTRY = Struct(">ii")
ENTRY_BYTES = ENTRY.size


def existing(disk: Disk, path: str) -> SparseIndex:
    return SparseIndex(disk, path, ENTRY)


def new(disk: Disk, path: str) -> SparseIndex:
    return SparseIndex.new(disk, path, ENTRY)


def is_full(index: SparseIndex, *, index_bytes_max: int) -> bool:
    return len(index) >= index_bytes_max // ENTRY_BYTES
