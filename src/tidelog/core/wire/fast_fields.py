"""The few field codecs that the hand-written Produce and Fetch share.

Each reader takes (body, position) and returns (value, position after it). An IndexError or
struct.error means that the message ended too early; the caller turns it into MalformedMessage.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from typing import NamedTuple

from tidelog.core.wire import decoder
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.varint import read_unsigned_varint, unsigned_varint

Topic = str | bytes
"""A name, or a 16-byte id in the versions that have ids."""

SHORT = Struct(">h")
INT = Struct(">i")
LONG = Struct(">q")
TOPIC_ID_BYTES = 16


class Endpoint(NamedTuple):
    """Where a current leader is to be found (KIP-951)."""

    node_id: int
    host: str
    port: int
    rack: str | None


def read_varint(body: memoryview, at: int) -> tuple[int, int]:
    """An unsigned varint: one byte for counts and names, two or three for records."""
    first = body[at]
    if first < 0x80:
        return first, at + 1
    second = body[at + 1]
    if second < 0x80:
        return first & 0x7F | second << 7, at + 2
    third = body[at + 2]
    if third < 0x80:
        return first & 0x7F | (second & 0x7F) << 7 | third << 14, at + 3
    return read_unsigned_varint(body, at)


def compact_count(body: memoryview, at: int) -> tuple[int, int]:
    """The length of a compact array; refused when it cannot fit into what is left."""
    count, at = read_varint(body, at)
    return _checked(count - 1, at, len(body)), at


def plain_count(body: memoryview, at: int) -> tuple[int, int]:
    (count,) = INT.unpack_from(body, at)
    return _checked(count, at + 4, len(body)), at + 4


def nullable_compact_string(body: memoryview, at: int) -> tuple[str | None, int]:
    length, at = read_varint(body, at)
    if length == 0:
        return None, at
    return _text(body, at, length - 1)


def compact_string(body: memoryview, at: int) -> tuple[str, int]:
    length, at = read_varint(body, at)
    return _text(body, at, length - 1)


def nullable_plain_string(body: memoryview, at: int) -> tuple[str | None, int]:
    (length,) = SHORT.unpack_from(body, at)
    if length == -1:
        return None, at + 2
    return _text(body, at + 2, length)


def plain_string(body: memoryview, at: int) -> tuple[str, int]:
    (length,) = SHORT.unpack_from(body, at)
    return _text(body, at + 2, length)


def topic_id(body: memoryview, at: int) -> tuple[bytes, int]:
    end = at + TOPIC_ID_BYTES
    if end > len(body):
        raise MalformedMessage("a topic id cut short")
    return bytes(body[at:end]), end


def skip_tags(body: memoryview, at: int) -> int:
    """The position after a block of tagged fields that we do not know."""
    if body[at] == 0:
        return at + 1
    count, at = read_varint(body, at)
    return decoder.skip_tags(body, at, _checked(count, at, len(body)))


def tagged_fields(body: memoryview, at: int) -> tuple[list[tuple[int, memoryview]], int]:
    """The tags of a block and their bytes; for the few places that know some of them."""
    count, at = read_varint(body, at)
    fields = []
    for _ in range(_checked(count, at, len(body))):
        tag, at = read_varint(body, at)
        size, at = read_varint(body, at)
        end = at + size
        if end > len(body):
            raise MalformedMessage(f"the tagged field {tag} is longer than the message")
        fields.append((tag, body[at:end]))
        at = end
    return fields, at


def check_end(at: int, size: int) -> None:
    """A request may be followed by bytes that are ignored, but not end too early."""
    if at > size:
        raise MalformedMessage(f"{size} bytes where {at} were expected")


def put_plain_string(out: bytearray, text: str | None) -> None:
    if text is None:
        out += b"\xff\xff"
        return
    data = text.encode()
    out += SHORT.pack(len(data)) + data


def put_compact_string(out: bytearray, text: str | None) -> None:
    if text is None:
        out.append(0)
        return
    data = text.encode()
    put_varint(out, len(data) + 1)
    out += data


def put_topic(out: bytearray, topic: Topic, *, flexible: bool) -> None:
    if not isinstance(topic, str):
        out += topic
    elif flexible:
        put_compact_string(out, topic)
    else:
        put_plain_string(out, topic)


def put_count(out: bytearray, count: int, *, flexible: bool) -> None:
    if flexible:
        put_varint(out, count + 1)
    else:
        out += INT.pack(count)


def put_varint(out: bytearray, value: int) -> None:
    """An unsigned varint: almost always a single byte."""
    if 0 <= value < 0x80:
        out.append(value)
    else:
        out += unsigned_varint(value)


def put_endpoints(out: bytearray, endpoints: Sequence[Endpoint]) -> None:
    """The tagged field 0 of Produce and Fetch answers, as the only tagged field."""
    field = bytearray(unsigned_varint(len(endpoints) + 1))
    for endpoint in endpoints:
        field += INT.pack(endpoint.node_id)
        put_compact_string(field, endpoint.host)
        field += INT.pack(endpoint.port)
        put_compact_string(field, endpoint.rack)
        field += b"\0"
    out += b"\x01\x00"
    out += unsigned_varint(len(field))
    out += field


def _text(body: memoryview, at: int, length: int) -> tuple[str, int]:
    end = at + length
    if length < 0 or end > len(body):
        raise MalformedMessage("a string that is null or cut short")
    return str(body[at:end], "utf-8"), end


def _checked(count: int, at: int, size: int) -> int:
    if count < 0 or count > size - at:
        raise MalformedMessage(f"{count} elements announced in {size - at} bytes")
    return count
