"""Walks the batches of a file from a position on: headers through a small window, or whole batches.

The headers alone are enough to find an offset, a leader epoch or a producer's sequence. Whatever is
not a batch where one should begin is CorruptBatch: the file was damaged after it was written.
"""

from __future__ import annotations

from collections.abc import Iterator

from tidelog.core.storage.disk import File
from tidelog.core.wire.record_batch import (
    BATCH_LENGTH_MIN,
    HEADER_BYTES,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    BatchHeader,
    CorruptBatch,
    read_header,
)

WINDOW_BYTES = 8 * 1024
"""For the headers of small batches that lie between two index entries."""


def headers(
    file: File, position: int, *, end_position: int | None = None, window_bytes: int = WINDOW_BYTES
) -> Iterator[tuple[int, BatchHeader]]:
    """Each batch's position and header up to `end_position`. A cut batch is CorruptBatch, too."""
    end = file.size_bytes if end_position is None else end_position
    window, window_position = b"", position
    while position < end:
        if position + HEADER_BYTES > window_position + len(window):
            window_position = position
            window = file.read(position, min(max(window_bytes, HEADER_BYTES), end - position))
        header = read_header(window, position - window_position)
        refuse_implausible(header, bytes_left=end - position)
        yield position, header
        position += header.batch_length + LENGTH_PREFIX_BYTES


def refuse_implausible(header: BatchHeader, *, bytes_left: int) -> None:
    """What can be seen from the header alone."""
    if header.magic != MAGIC:
        raise CorruptBatch(f"magic {header.magic} instead of {MAGIC}")
    if header.batch_length < BATCH_LENGTH_MIN:
        raise CorruptBatch(f"batch length {header.batch_length} is below {BATCH_LENGTH_MIN}")
    if header.size_bytes > bytes_left:
        raise CorruptBatch(f"{bytes_left} bytes left of a batch of {header.size_bytes}")
    if header.base_offset < 0 or header.last_offset_delta < 0:
        raise CorruptBatch(f"offsets {header.base_offset} and {header.last_offset_delta} more")
