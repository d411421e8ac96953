"""Payloads: a unique name, blown up to a record's value in a way that shows any damage."""

from __future__ import annotations

from tidelog.core.wire.record_batch import (
    CorruptBatch,
    batches,
    crc_is_valid,
    read_header,
)
from tidelog.core.wire.records import iterate
from tidelog.judge.history import Seen, Sequence32

INT32_VALUES = 2**31


def to_value(payload: str, size_bytes: int) -> bytes:
    """The name, a colon, and the name again and again up to the size."""
    name = payload.encode() + b":"
    return (name * (size_bytes // len(name) + 1))[: max(size_bytes, len(name))]


def from_value(value: bytes | None) -> str:
    """The name; whatever is not exactly as it was made gets a name that no writer ever used."""
    if value is None:
        return "(null)"
    name, colon, _ = value.partition(b":")
    payload = name.decode(errors="replace")
    if not colon or to_value(payload, len(value)) != value:
        return f"(garbled {value[:24]!r})"
    return payload


def read_answer(
    records: bytes | memoryview | None, *, next_offset: int
) -> tuple[tuple[Seen, ...], int | None]:
    """The records of the whole batches of an answer, and the offset where its bytes are corrupt.

    An answer begins with a whole batch: if none is, a length was damaged.
    """
    view = memoryview(records or b"")
    seen: list[Seen] = []
    try:
        for position, header in batches(view):
            leader_epoch = header.leader_epoch if header.leader_epoch >= 0 else None
            if not crc_is_valid(view, position, header):
                return tuple(seen), header.base_offset
            for index, record in enumerate(iterate(view, position)):
                numbered = None
                if header.producer_id >= 0 and header.base_sequence >= 0:
                    sequence = (header.base_sequence + index) % INT32_VALUES
                    numbered = Sequence32(header.producer_id, header.producer_epoch, sequence)
                payload = from_value(record.value)
                seen.append(Seen(record.offset, payload, numbered, leader_epoch))
            next_offset = header.end_offset
    except CorruptBatch:
        return tuple(seen), next_offset
    return tuple(seen), None if seen or not view else next_offset


def first_batch(records: bytes | memoryview) -> tuple[int, int]:
    """Base and end offset of the batch that the bytes begin with."""
    header = read_header(records)
    return header.base_offset, header.end_offset
