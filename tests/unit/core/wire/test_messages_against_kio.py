"""Every version of every message has the bytes that kio, an independent codec, gives it."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import is_dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, get_args, get_type_hints
from uuid import UUID

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer
from kio.static.primitive import TZAware, i64Timedelta

from tests.unit.core.wire.any_message import NARROWED, structs
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.schema import Message, Struct, int16, int32, int64, string

# (message, version) -> why kio cannot judge it.
GAPS: dict[tuple[str, int], str] = {
    ("ApiVersionsRequest", 5): "new in Kafka 4.4; test_api_18 has the bytes of Java's client",
    ("ApiVersionsResponse", 5): "new in Kafka 4.4; has the fields of version 4",
}


def all_versions() -> Iterator[tuple[type[Message], int]]:
    for pair in MESSAGES.values():
        for message in pair:
            for version in message.versions:
                if (message.__name__, version) not in GAPS:
                    yield message, version


ALL = list(all_versions())
IDS = [f"{message.__name__}-v{version}" for message, version in ALL]


def kio_type(message: type[Message], version: int) -> Any:
    is_request = message.__name__.endswith("Request")
    load = load_request_schema if is_request else load_response_schema
    return load(message.api_key, version)


def agree(message: type[Message], version: int, *, examples: int) -> None:
    theirs = kio_type(message, version)
    read, write = entity_reader(theirs), entity_writer(theirs)

    @settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def check(data: st.DataObject) -> None:
        ours = data.draw(structs(message, version))
        encoded = encode(ours, version)
        parsed, size = read(encoded, 0)
        assert size == len(encoded)
        assert_same_values(ours, parsed, version)
        buffer = io.BytesIO()
        write(buffer, parsed)
        written = buffer.getvalue()
        assert written == encoded
        assert decode(message, memoryview(written), version) == ours

    check()


def assert_same_values(ours: Struct, theirs: object, version: int) -> None:
    for field in type(ours).schema:
        if field.exists_in(version):
            name = field.name if hasattr(theirs, field.name) else field.name.removesuffix("_ms")
            assert_same(getattr(ours, field.name), getattr(theirs, name), version)


def assert_same(ours: Any, theirs: Any, version: int) -> None:
    if isinstance(ours, Struct):
        assert_same_values(ours, theirs, version)
    elif isinstance(ours, list):
        for our_item, their_item in zip(ours, theirs, strict=True):
            assert_same(our_item, their_item, version)
    else:
        assert ours == plain(theirs, ours)


def plain(theirs: Any, ours: Any) -> Any:
    """What stood on the wire for kio's durations, moments, ids and errors."""
    match theirs:
        case timedelta():
            return theirs // timedelta(milliseconds=1)
        case datetime():
            return (theirs - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)
        case UUID():
            return theirs.bytes
        case ErrorCode():
            return theirs.value
        case None if ours in (-1, bytes(16)):
            return ours
    return theirs


@pytest.mark.parametrize(("message", "version"), ALL, ids=IDS)
def test_a_message_has_the_bytes_that_kio_gives_it(message: type[Message], version: int) -> None:
    agree(message, version, examples=6)


def test_no_number_is_drawn_that_kio_cannot_hold() -> None:
    """A new field that kio reads as a duration or a moment would be red only in long runs."""
    names = {name for message, version in ALL for name in narrow_fields(kio_type(message, version))}

    assert names == {
        "retention_time",
        "session_lifetime",
        "transaction_start_time",
        "log_append_time",
    }
    assert {f"{name}_ms" for name in names} <= NARROWED.keys()


def narrow_fields(theirs: Any) -> Iterator[str]:
    """Fields of a kio message, at any depth, that hold fewer values than the wire's 64 bits."""
    for name, kind in get_type_hints(theirs).items():
        parts = [kind, *(part for outer in get_args(kind) for part in (outer, *get_args(outer)))]
        if i64Timedelta in parts or TZAware in parts:
            yield name
        for part in filter(is_dataclass, parts):
            yield from narrow_fields(part)


def test_a_wrong_schema_is_found_out() -> None:
    """A planted lie: two fields have changed places, which the bytes alone do not show."""

    class InitProducerIdRequest(Message, api_key=22, versions="0-5", flexible_from=2):
        transactional_id: str | None = string(nullable="0+", default=None)
        transaction_timeout_ms: int = int32()
        producer_epoch: int = int16("3+", default=-1)
        producer_id: int = int64("3+", default=-1)

    agree(InitProducerIdRequest, 2, examples=6)
    with pytest.raises(AssertionError):
        agree(InitProducerIdRequest, 3, examples=6)


@pytest.mark.long
@pytest.mark.parametrize(("message", "version"), ALL, ids=IDS)
def test_many_messages_have_the_bytes_that_kio_gives_them(
    message: type[Message], version: int
) -> None:
    agree(message, version, examples=100)
