"""Messages as plain data and back, by the schema tables of `core.wire`.

Cases are written as plain dictionaries and recordings are JSON, so neither depends on how message
classes are spelled.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidelog.core.node.api import HANDLERS
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.schema import Array, Message, Nested, Struct

KEYS = {MESSAGES[key][0].__name__.removesuffix("Request"): key for key in MESSAGES}
"""All APIs that have messages, by Kafka's names."""
API_KEYS = {api: key for api, key in KEYS.items() if key in HANDLERS}
"""The APIs that are compared: all that are served."""

API_VERSIONS = 18


class NotTheSameBytes(Exception):
    """An answer, decoded and encoded again, gives other bytes: one of our codecs is wrong."""


def encode_request(
    api: str, version: int, fields: Mapping[str, Any], *, correlation_id: int, client_id: str | None
) -> bytes:
    """One request, header included, without its size."""
    request = request_of(api, fields)
    return request_header(type(request), version, correlation_id, client_id) + encode(
        request, version
    )


def request_of(api: str, fields: Mapping[str, Any]) -> Message:
    """A request made of plain data."""
    request: Message = _built(MESSAGES[KEYS[api]][0], fields)
    return request


def request_header(
    request_class: type[Message], version: int, correlation_id: int, client_id: str | None
) -> bytes:
    """Header version 2 (with an empty tag section) for flexible requests, else version 1."""
    flexible_from = request_class.flexible_from
    flexible = flexible_from is not None and version >= flexible_from
    return raw_header(request_class.api_key, version, correlation_id, client_id, flexible=flexible)


def raw_header(
    api_key: int, version: int, correlation_id: int, client_id: str | None, *, flexible: bool
) -> bytes:
    """A request header for any API key and version, sensible or not."""
    name = None if client_id is None else client_id.encode()
    parts = [
        api_key.to_bytes(2, "big", signed=True),
        version.to_bytes(2, "big", signed=True),
        correlation_id.to_bytes(4, "big", signed=True),
        (-1 if name is None else len(name)).to_bytes(2, "big", signed=True),
        name or b"",
        b"\x00" if flexible else b"",
    ]
    return b"".join(parts)


def decode_answer(api: str, version: int, answer: bytes) -> Message:
    """The body of an answer; refuses one that our own codec would not write back byte by byte."""
    response_class = MESSAGES[KEYS[api]][1]
    flexible_from = response_class.flexible_from
    flexible = flexible_from is not None and version >= flexible_from
    position = 5 if flexible and KEYS[api] != API_VERSIONS else 4
    message = decode(response_class, memoryview(answer), version, position)
    again = encode(message, version)
    if again != answer[position:]:
        raise NotTheSameBytes(f"{api} v{version}: {answer[position:].hex()} became {again.hex()}")
    return message


def to_plain(value: Any, version: int) -> Any:
    """Dictionaries, lists and scalars; only the fields that this version has."""
    if isinstance(value, Struct):
        return {
            field.name: to_plain(getattr(value, field.name), version)
            for field in type(value).schema
            if field.exists_in(version)
        }
    if isinstance(value, list):
        return [to_plain(item, version) for item in value]
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return value


def error_codes(plain: Any) -> set[int]:
    """All that stand anywhere in an answer."""
    if isinstance(plain, dict):
        codes = {plain[name] for name in ("error_code", "partition_error_code") if name in plain}
        return codes.union(*map(error_codes, plain.values()))
    if isinstance(plain, list):
        return set[int]().union(*map(error_codes, plain))
    return set()


def _built(struct: type[Struct], fields: Mapping[str, Any]) -> Any:
    kinds = {field.name: field.kind for field in struct.schema}
    return struct(**{name: _value(kinds[name], value) for name, value in fields.items()})


def _value(kind: Any, value: Any) -> Any:
    if isinstance(kind, Array) and value is not None:
        return [_value(kind.item, item) for item in value]
    if isinstance(kind, Nested) and isinstance(value, Mapping):
        return _built(kind.struct, value)
    return value
