"""Variable-length integers: seven bits per byte, the lowest first, the top bit says "more".

Unsigned ones carry lengths, counts and tags; the signed ones of record batches are zigzag
coded (0, -1, 1, -2 become 0, 1, 2, 3). A 32-bit number takes at most 5 bytes, a 64-bit one 10.
"""

from __future__ import annotations

from tidelog.core.wire.malformed import MalformedMessage

UNSIGNED_VARINT_MAX = 2**32 - 1
VARINT_BYTES_MAX = 5
VARLONG_BYTES_MAX = 10

Bytes = bytes | bytearray | memoryview


def read_unsigned_varint(view: Bytes, position: int) -> tuple[int, int]:
    """The 32-bit number at `position`, and the position after it."""
    return _read(view, position, bytes_max=VARINT_BYTES_MAX, value_end=2**32)


def read_varint(view: Bytes, position: int) -> tuple[int, int]:
    """The zigzag coded 32-bit number at `position`, and the position after it."""
    value, position = _read(view, position, bytes_max=VARINT_BYTES_MAX, value_end=2**32)
    return (value >> 1) ^ -(value & 1), position


def read_varlong(view: Bytes, position: int) -> tuple[int, int]:
    """The zigzag coded 64-bit number at `position`, and the position after it."""
    value, position = _read(view, position, bytes_max=VARLONG_BYTES_MAX, value_end=2**64)
    return (value >> 1) ^ -(value & 1), position


def unsigned_varint(value: int) -> bytes:
    """The bytes of an unsigned 32-bit number."""
    if not 0 <= value <= UNSIGNED_VARINT_MAX:
        raise ValueError(f"{value} is not an unsigned 32-bit number")
    return _write(value)


def varint(value: int) -> bytes:
    """The zigzag bytes of a signed 32-bit number."""
    if not -(2**31) <= value < 2**31:
        raise ValueError(f"{value} is not a signed 32-bit number")
    return _write((value << 1) ^ (value >> 31))


def varlong(value: int) -> bytes:
    """The zigzag bytes of a signed 64-bit number."""
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{value} is not a signed 64-bit number")
    return _write((value << 1) ^ (value >> 63))


def _read(view: Bytes, position: int, *, bytes_max: int, value_end: int) -> tuple[int, int]:
    value = 0
    shift = 0
    for index in range(position, min(position + bytes_max, len(view))):
        byte = view[index]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >= value_end:
                raise MalformedMessage(f"the varint at byte {position} is too large")
            return value, index + 1
        shift += 7
    if position + bytes_max <= len(view):
        raise MalformedMessage(f"the varint at byte {position} is longer than {bytes_max} bytes")
    raise MalformedMessage(f"the varint at byte {position} ends too early")


def _write(value: int) -> bytes:
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


_ONE_BYTE = tuple(bytes((value,)) for value in range(0x80))
