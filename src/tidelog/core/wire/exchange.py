"""One request as a frame, and the messages in frames: the whole codec of a simple client."""

from __future__ import annotations

from struct import Struct

from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import read_request_header, read_response_header, request_header
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.schema import Message

SIZE = Struct(">i")
"""What stands before every frame."""


def request_frame(
    request: Message, version: int, *, correlation_id: int, client_id: str | None
) -> bytes:
    """A request with its size and header."""
    header = request_header(
        request.api_key, version, correlation_id=correlation_id, client_id=client_id
    )
    body = encode(request, version)
    return b"".join((SIZE.pack(len(header) + len(body)), header, body))


def decode_request(frame: bytes | memoryview) -> Message:
    """The request in a frame without its size."""
    view = memoryview(frame)
    header = read_request_header(view)
    return decode(MESSAGES[header.api_key][0], view, header.api_version, header.body_position)


def decode_response(frame: bytes | memoryview, api_key: int, version: int) -> tuple[int, Message]:
    """The correlation id and the response in a frame without its size."""
    view = memoryview(frame)
    correlation_id, position = read_response_header(view, api_key, version)
    return correlation_id, decode(MESSAGES[api_key][1], view, version, position)
