"""What stands before every request and answer: who asks what, in which version.

A request of a flexible version has a header with tagged fields (version 2), every other one
has header version 1. Answers have header version 1 or 0 in the same way, except those to
ApiVersions: a client that does not know our versions yet must be able to read them.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from tidelog.core.wire.decoder import skip_tags
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.varint import read_unsigned_varint

API_VERSIONS = 18

# By API key, for all keys of Kafka 4.3, served here or not: the first flexible version.
# Keys 4 to 7 have no version any more.
# fmt: off
FLEXIBLE_FROM: tuple[int | None, ...] = (
    9, 12, 6, 9, None, None, None, None, 8, 6,  # 0 Produce, Fetch, ListOffsets, Metadata, ...
    3, 6, 4, 4, 4, 5, 3, None, 3, 5,            # 10 FindCoordinator ... CreateTopics
    4, 2, 2, 4, 3, 3, 3, 1, 3, 2,               # 20 DeleteTopics ... DescribeAcls
    2, 2, 4, 2, 2, 2, 2, 2, 2, 2,               # 30 CreateAcls ... RenewDelegationToken
    2, 2, 2, 2, 1, 0, 0, None, 1, 1,            # 40 ExpireDelegationToken ... AlterClientQuotas
    0, 0, 0, 1, 1, 0, 0, 0, 0, 0,               # 50 DescribeUserScramCredentials ...
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0,               # 60 DescribeCluster ...
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0,               # 70 ControllerRegistration ...
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0,               # 80 AddRaftVoter ...
    0, 0, 0,                                    # 90 DescribeShareGroupOffsets ...
)
# fmt: on

_FIXED = struct.Struct(">hhih")
_CORRELATION = struct.Struct(">i")
_NO_TAGS = b"\0"


class RequestHeader(NamedTuple):
    """The head of a request; its body begins at `body_position` of the same view."""

    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None
    body_position: int


def is_flexible(api_key: int, version: int) -> bool:
    """Whether this version of an API has compact lengths and tagged fields."""
    flexible_from = FLEXIBLE_FROM[api_key]
    return flexible_from is not None and version >= flexible_from


def read_request_header(view: memoryview) -> RequestHeader:
    """The header at the start of a frame; MalformedMessage also for an unknown API."""
    try:
        api_key, version, correlation_id, length = _FIXED.unpack_from(view, 0)
    except struct.error:
        raise MalformedMessage(f"a request of {len(view)} bytes has no header") from None
    if not 0 <= api_key < len(FLEXIBLE_FROM):
        raise MalformedMessage(f"there is no API with the key {api_key}")
    position = _FIXED.size
    client_id = None
    if length != -1:
        end = position + length
        if length < 0 or end > len(view):
            raise MalformedMessage(f"the client id has the length {length}")
        try:
            client_id = str(view[position:end], "utf-8")
        except UnicodeDecodeError:
            raise MalformedMessage("the client id is not UTF-8") from None
        position = end
    if is_flexible(api_key, version):
        position = _skip_header_tags(view, position)
    return RequestHeader(api_key, version, correlation_id, client_id, position)


def request_header(
    api_key: int, version: int, *, correlation_id: int, client_id: str | None
) -> bytes:
    """The header that a client puts before its request."""
    name = b"" if client_id is None else client_id.encode()
    length = -1 if client_id is None else len(name)
    tags = b"\0" if is_flexible(api_key, version) else b""
    return _FIXED.pack(api_key, version, correlation_id, length) + name + tags


def response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """The header that stands before an answer."""
    if is_flexible(api_key, version) and api_key != API_VERSIONS:
        return _CORRELATION.pack(correlation_id) + b"\0"
    return _CORRELATION.pack(correlation_id)


def read_response_header(view: memoryview, api_key: int, version: int) -> tuple[int, int]:
    """The correlation id of an answer and the position of its body."""
    try:
        (correlation_id,) = _CORRELATION.unpack_from(view, 0)
    except struct.error:
        raise MalformedMessage(f"an answer of {len(view)} bytes has no header") from None
    position = _CORRELATION.size
    if is_flexible(api_key, version) and api_key != API_VERSIONS:
        position = _skip_header_tags(view, position)
    return correlation_id, position


def _skip_header_tags(view: memoryview, position: int) -> int:
    if view[position : position + 1] == _NO_TAGS:
        return position + 1
    count, position = read_unsigned_varint(view, position)
    return skip_tags(view, position, count)
