"""A piece: some batches of a fetch answer, unpacked, that are read together.

Small batches together make arrays that are worth their calls, and a few MiB of them still fit into
the processor's caches. A bound on what is unpacked at a time bounds memory, whatever the batches
unpack to. Batches that are not compressed stay where they are.
"""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from tidelog.core.model.limits import DECOMPRESSED_BATCH_BYTES_MAX, INT64_MAX
from tidelog.core.wire.compression import Compression, decompress
from tidelog.core.wire.record_batch import HEADER_BYTES, BatchHeader, CorruptBatch
from tidelog.spark.columns.parallel_walk import BatchSection
from tidelog.spark.columns.varints import Octets

CHUNK_BYTES = 4 * 2**20
"""A piece that has so much takes no further batch."""


class FetchChunk:
    """Batches in the order of their offsets, each with where its records lie."""

    def __init__(self, records: memoryview) -> None:
        self.records = records
        self._positions: list[int] = []
        self._unpacked: list[memoryview] = []
        self._is_packed = False
        self.headers: list[BatchHeader] = []
        self.size_bytes = 0
        self.skipped_aborted = 0
        self.skipped_control = 0

    def add(self, position: int, header: BatchHeader) -> None:
        """A whole batch of the answer; CorruptBatch if it does not unpack."""
        if header.last_offset_delta < 0 or header.base_offset > INT64_MAX - 2**32:
            raise CorruptBatch(f"offsets from {header.base_offset}, {header.last_offset_delta} on")
        section = self.records[position + HEADER_BYTES : position + header.size_bytes]
        if header.compression != Compression.NONE and header.records_count != 0:
            self._is_packed = True
            unpacked = decompress(
                header.compression, section, bytes_max=DECOMPRESSED_BATCH_BYTES_MAX
            )
            section = memoryview(unpacked)
        self._positions.append(position)
        self._unpacked.append(section)
        self.headers.append(header)
        self.size_bytes += len(section)

    def laid_out(self) -> tuple[Octets, list[BatchSection]]:
        """All records in one stretch of bytes, and where those of each batch are in it."""
        counts = [header.records_count for header in self.headers]
        sizes = [len(section) for section in self._unpacked]
        if self._is_packed:
            data: bytes | memoryview = b"".join(self._unpacked)
            starts = [0, *accumulate(sizes)]
        else:
            origin = self._positions[0]
            data = self.records[origin : self._positions[-1] + self.headers[-1].size_bytes]
            starts = [position - origin + HEADER_BYTES for position in self._positions]
        sections = [
            BatchSection(start, start + size, count)
            for start, size, count in zip(starts, sizes, counts, strict=False)
        ]
        return np.frombuffer(data, dtype=np.uint8), sections
