"""Request and answer headers, for every API that exists."""

from __future__ import annotations

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.schema.index import api_key_map, schema_name_map
from kio.static.constants import EntityType

from tidelog.core.wire.headers import (
    FLEXIBLE_FROM,
    RequestHeader,
    read_request_header,
    read_response_header,
    request_header,
    response_header,
)
from tidelog.core.wire.malformed import MalformedMessage

FETCH, API_VERSIONS, SASL_HANDSHAKE = 1, 18, 17
REMOVED = {4, 5, 6, 7}


@pytest.mark.parametrize("api_key", sorted(set(range(93)) - REMOVED))
def test_the_header_versions_of_an_api_are_those_that_kio_knows(api_key: int) -> None:
    versions = schema_name_map[api_key_map[api_key]]
    for version in versions:
        assert EntityType.request in versions[version]
        asked = load_request_schema(api_key, version).__header_schema__.__version__
        answered = load_response_schema(api_key, version).__header_schema__.__version__

        ours = request_header(api_key, version, correlation_id=1, client_id="")
        assert len(ours) == {1: 10, 2: 11}[asked]
        assert len(response_header(api_key, version, 1)) == {0: 4, 1: 5}[answered]


def test_every_api_key_has_its_place_in_the_table() -> None:
    assert len(FLEXIBLE_FROM) == max(api_key_map) + 1 == 93
    assert REMOVED.isdisjoint(api_key_map)


@pytest.mark.parametrize(
    ("hexadecimal", "expected"),
    [
        ("0001 000b 00000007 0003 616263", RequestHeader(FETCH, 11, 7, "abc", 13)),
        ("0001 000b 00000007 ffff", RequestHeader(FETCH, 11, 7, None, 10)),
        ("0001 000c 00000007 0000 00", RequestHeader(FETCH, 12, 7, "", 11)),
        ("0001 000c ffffffff ffff 01 00 02 6161", RequestHeader(FETCH, 12, -1, None, 15)),
        ("0012 0002 00000007 ffff", RequestHeader(API_VERSIONS, 2, 7, None, 10)),
        ("0012 0003 00000007 ffff 00", RequestHeader(API_VERSIONS, 3, 7, None, 11)),
        ("0012 7fff 00000007 ffff 00", RequestHeader(API_VERSIONS, 32767, 7, None, 11)),
        ("0011 0001 00000007 ffff", RequestHeader(SASL_HANDSHAKE, 1, 7, None, 10)),
        ("0001 ffff 00000007 ffff", RequestHeader(FETCH, -1, 7, None, 10)),
    ],
)
def test_a_request_header_is_read_up_to_its_body(hexadecimal: str, expected: RequestHeader) -> None:
    data = bytes.fromhex(hexadecimal)

    assert read_request_header(memoryview(data + b"body")) == expected
    assert expected.body_position == len(data)


@pytest.mark.parametrize(
    ("hexadecimal", "reason"),
    [
        ("", "no header"),
        ("0001 000b 00000007 00", "no header"),
        ("005d 0000 00000007 ffff", "no API with the key 93"),
        ("ffff 0000 00000007 ffff", "no API with the key -1"),
        ("0001 000b 00000007 0004 616263", "client id has the length 4"),
        ("0001 000b 00000007 fffe", "client id has the length -2"),
        ("0001 000b 00000007 0001 ff", "not UTF-8"),
        ("0001 000c 00000007 ffff", "ends too early"),
        ("0001 000c 00000007 ffff 01 00 05 00", "longer than the message"),
        ("0001 000c 00000007 ffff ffffffff0f", "ends too early"),
    ],
)
def test_a_bad_request_header_is_refused(hexadecimal: str, reason: str) -> None:
    with pytest.raises(MalformedMessage, match=reason):
        read_request_header(memoryview(bytes.fromhex(hexadecimal)))


@pytest.mark.parametrize("client_id", [None, "", "tide"])
@pytest.mark.parametrize("version", [11, 12])
def test_a_written_request_header_is_read_again(client_id: str | None, version: int) -> None:
    data = request_header(FETCH, version, correlation_id=9, client_id=client_id)

    header = read_request_header(memoryview(data))

    assert header == RequestHeader(FETCH, version, 9, client_id, len(data))


@pytest.mark.parametrize(
    ("api_key", "version", "hexadecimal"),
    [
        (FETCH, 11, "00000009"),
        (FETCH, 12, "00000009 00"),
        (API_VERSIONS, 0, "00000009"),
        (API_VERSIONS, 4, "00000009"),  # though its body is flexible
    ],
)
def test_an_answers_header_tells_the_correlation_id(
    api_key: int, version: int, hexadecimal: str
) -> None:
    data = bytes.fromhex(hexadecimal)

    assert response_header(api_key, version, 9) == data
    assert read_response_header(memoryview(data), api_key, version) == (9, len(data))


def test_a_bad_answer_header_is_refused() -> None:
    with pytest.raises(MalformedMessage, match="no header"):
        read_response_header(memoryview(b"\0\0\0"), FETCH, 4)
    with pytest.raises(MalformedMessage, match="ends too early"):
        read_response_header(memoryview(b"\0\0\0\0"), FETCH, 12)
