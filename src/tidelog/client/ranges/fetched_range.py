"""What one fetch brought of a range: whole batches as they came, and the log's bounds."""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct
from typing import NamedTuple

from tidelog.core.wire.record_batch import (
    BATCH_LENGTH_MIN,
    HEADER_BYTES,
    LENGTH_PREFIX_BYTES,
    MAGIC,
    CorruptBatch,
    UnsupportedMagic,
    read_header,
)

_PREFIX = Struct(">qi")


class FetchedAbortedTransaction(NamedTuple):
    """A transaction whose records do not count, as the broker lists it."""

    producer_id: int
    first_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchedRange:
    """Bytes of some whole batches that begin at or before `start_offset`, and what goes with them.

    The first batch may begin before the range and the last one end after it. `aborted` are the
    aborted transactions that reach into these batches; empty unless reading read_committed.
    """

    records: memoryview
    aborted: tuple[FetchedAbortedTransaction, ...]
    start_offset: int
    next_offset: int
    """Where the next fetch begins: everything before it is in these bytes or does not exist."""
    log_start_offset: int | None
    last_stable_offset: int | None
    high_watermark: int
    broker_id: int


class WholeBatches(NamedTuple):
    """How far some bytes hold whole batches that a range wants."""

    bytes_end: int
    next_offset: int
    leader_epoch: int


def whole_batches(records: memoryview, *, end_offset: int) -> WholeBatches | None:
    """The whole batches at the beginning that start before `end_offset`; None: not one is whole.

    Only sizes are looked at on the way, since a fetch may hold thousands of small batches; whoever
    decodes them checks each one.
    """
    size = len(records)
    unpack = _PREFIX.unpack_from
    at = 0
    found: int | None = None
    while at + HEADER_BYTES <= size:
        base_offset, length = unpack(records, at)
        if length < BATCH_LENGTH_MIN:
            raise CorruptBatch(f"a batch of {length} bytes")
        after = at + LENGTH_PREFIX_BYTES + length
        if base_offset >= end_offset:
            # A gap reaches to the end of the range, or the range ends here.
            leader_epoch = _leader_epoch(records, found)
            return WholeBatches(at, end_offset, leader_epoch)
        if after > size:
            break
        found, at = at, after
    if found is None:
        return None
    header = read_header(records, found)
    if header.magic != MAGIC:
        raise UnsupportedMagic(header.magic)
    return WholeBatches(at, header.end_offset, header.leader_epoch)


def _leader_epoch(records: memoryview, at: int | None) -> int:
    return -1 if at is None else read_header(records, at).leader_epoch
