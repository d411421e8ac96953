"""Small Produce requests as ready bytes, so that a load generator only sends and receives."""

from __future__ import annotations

import struct
import time

from tests.golden.plain import encode_request
from tests.process.wire import batch_of, produce_fields

PRODUCE_VERSION = 9
"""The highest that names topics by name and is flexible: what clients of today speak, or nearly."""
ANSWER_ERROR_IS = b"\0\0"


def produce_frame(topic: str, *, partition: int, value_bytes: int) -> bytes:
    """A Produce of one record with `acks=all`, size included."""
    batch = batch_of(b"v" * value_bytes, timestamp_ms=int(time.time() * 1000))
    fields = produce_fields(topic, batch, partition=partition)
    request = encode_request(
        "Produce", PRODUCE_VERSION, fields, correlation_id=7, client_id="bench"
    )
    return struct.pack(">i", len(request)) + request


def error_position(topic: str) -> int:
    """Where the answer (size included) holds the error code of its only partition."""
    size, correlation_id, tags, topic_count, name_length, partition_count, index = (
        4,
        4,
        1,
        1,
        1,
        1,
        4,
    )
    assert len(topic) < 127, "the name's length must fit in one byte"
    head = size + correlation_id + tags + topic_count + name_length + len(topic)
    return head + partition_count + index
