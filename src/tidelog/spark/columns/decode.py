"""Record batches into Arrow columns: fetch responses, as one partition's range of offsets.

Batches are examined one by one (checksum, range, transactions), records only as arrays. What a
reader of the range must not see is left out: control records, aborted transactions if it reads
committed ones only, and what lies outside of the range, since brokers send whole batches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidelog.core.wire.record_batch import (
    BatchHeader,
    CorruptBatch,
    batches,
    crc_is_valid,
)
from tidelog.spark.columns.aborted import Aborted, AbortedProducers
from tidelog.spark.columns.chunks import CHUNK_BYTES, FetchChunk, chunk_columns, record_schema

__all__ = ["Aborted", "Decoded", "ColumnDecoder", "record_schema"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoded:
    """Some consecutive records of a range, and the number of records that were left out."""

    columns: pa.RecordBatch
    next_offset: int
    """Everything before it is covered: by records, by gaps, or by what was skipped."""
    records: int
    skipped_aborted: int
    """Records of aborted batches that touch the range."""
    skipped_control: int


class ColumnDecoder:
    """Reads [start_offset, end_offset) of one partition out of its fetch responses."""

    def __init__(
        self, *, start_offset: int, end_offset: int, is_read_committed: bool, with_headers: bool
    ) -> None:
        self.next_offset = start_offset
        self._end_offset = end_offset
        self._aborted = AbortedProducers() if is_read_committed else None
        self._with_headers = with_headers

    def decode(self, records: memoryview, aborted: Sequence[Aborted]) -> Iterator[Decoded]:
        """The records of one response, some MiB at a time; a batch that is cut off is left out.

        `records` may be overwritten only after the last of them. At least one Decoded comes if any
        batch was whole. CorruptBatch says at which offset the response cannot be trusted.
        """
        if self._aborted is not None:
            self._aborted.start_response(aborted)
        for chunk, seen_to_offset in self._chunks(records):
            columns = chunk_columns(
                chunk,
                start_offset=self.next_offset,
                end_offset=self._end_offset,
                with_headers=self._with_headers,
            )
            self.next_offset = max(self.next_offset, seen_to_offset)
            yield Decoded(
                columns=columns,
                next_offset=self.next_offset,
                records=columns.num_rows,
                skipped_aborted=chunk.skipped_aborted,
                skipped_control=chunk.skipped_control,
            )

    def _chunks(self, records: memoryview) -> Iterator[tuple[FetchChunk, int]]:
        """What is wanted of the response, and up to which offset each chunk brings the reader."""
        chunk = FetchChunk(records)
        seen_to_offset: int | None = None
        yielded_to_offset: int | None = None
        offset = self.next_offset
        try:
            for position, header in batches(records):
                if seen_to_offset is not None and header.base_offset < seen_to_offset:
                    raise CorruptBatch(f"a batch of offset {header.base_offset} comes after")
                offset = header.base_offset
                if offset >= self._end_offset:
                    seen_to_offset = self._end_offset
                    break
                self._add_or_skip(chunk, position, header)
                offset = seen_to_offset = min(header.end_offset, self._end_offset)
                if chunk.size_bytes >= CHUNK_BYTES:
                    yield chunk, seen_to_offset
                    chunk, yielded_to_offset = FetchChunk(records), seen_to_offset
        except CorruptBatch as error:
            raise CorruptBatch(f"{error}, at offset {offset}") from error
        if seen_to_offset is not None and seen_to_offset != yielded_to_offset:
            yield chunk, seen_to_offset

    def _add_or_skip(self, chunk: FetchChunk, position: int, header: BatchHeader) -> None:
        """Add a batch of the response to the chunk, or count it there as skipped."""
        records = chunk.records
        if not crc_is_valid(records, position, header):
            raise CorruptBatch("a batch has the wrong checksum")
        is_aborted = self._aborted is not None and self._aborted.take_batch(
            records, position, header
        )
        if header.end_offset <= self.next_offset:
            return
        if header.is_control:
            chunk.skipped_control += header.records_count
        elif is_aborted:
            chunk.skipped_aborted += header.records_count
        else:
            chunk.add(position, header)
