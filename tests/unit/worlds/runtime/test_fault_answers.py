"""Error answers made from requests: for every API that a broker serves, in all its versions."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import HANDLERS
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import RequestHeader
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.schema import Array, Kind, Message, Nested, Scalar, Struct
from tidelog.worlds.runtime.fault_answers import ERRORS, error_answer, wants_no_answer

CODE = ErrorCode.NOT_LEADER_OR_FOLLOWER
PRODUCE, FETCH, LIST_OFFSETS, METADATA, FIND_COORDINATOR, DELETE_TOPICS = 0, 1, 2, 3, 10, 20


def full(kind: type[Struct], version: int) -> Struct:
    """A struct with one of everything."""
    made = kind()
    for field in kind.schema:
        if field.exists_in(version):
            setattr(made, field.name, one(field.kind, version))
    return made


def one(kind: Kind, version: int) -> Any:
    if isinstance(kind, Array):
        return [one(kind.item, version)]
    if isinstance(kind, Nested):
        return full(kind.struct, version)
    if isinstance(kind, Scalar):
        return b"7" * 16 if kind.format == "16s" else kind.zero.__class__(7)
    return "seven" if kind.is_text else b"7"


def errors(value: object) -> list[int]:
    """Every error code anywhere in a message."""
    if isinstance(value, list):
        return [code for each in value for code in errors(each)]
    if not isinstance(value, Struct):
        return []
    found: list[int] = []
    for field in type(value).schema:
        inner = getattr(value, field.name)
        found += [inner] if field.name in ERRORS else errors(inner)
    return found


def answer_to(
    request: Message, version: int, code: ErrorCode = CODE
) -> tuple[Message | None, RequestHeader, memoryview]:
    frame = memoryview(encode(request, version))
    header = RequestHeader(request.api_key, version, 1, "app", 0)
    return error_answer(header, frame, code), header, frame


@pytest.mark.parametrize("api_key", sorted(HANDLERS))
def test_every_api_can_be_answered_with_an_error_in_every_version(api_key: int) -> None:
    asked_type, answer_type = MESSAGES[api_key]
    for version in HANDLERS[api_key].versions:
        request = full(asked_type, version)
        assert isinstance(request, Message)
        answer, _, _ = answer_to(request, version)
        assert answer is not None, version
        assert errors(answer).count(CODE) == 1, (version, answer)
        again = decode(answer_type, memoryview(encode(answer, version)), version)
        assert errors(again).count(CODE) == 1, (version, again)


def plain(api_key: int, **fields: Any) -> Message:
    return MESSAGES[api_key][0](**fields)


def items(api_key: int, *path: str) -> type[Struct]:
    """The struct in a request's list."""
    kind: type[Struct] = MESSAGES[api_key][0]
    for name in path:
        field = next(field for field in kind.schema if field.name == name)
        assert isinstance(field.kind, Array) and isinstance(field.kind.item, Nested)
        kind = field.kind.item.struct
    return kind


def test_what_was_asked_for_is_named_again() -> None:
    topic = items(PRODUCE, "topic_data")
    data = items(PRODUCE, "topic_data", "partition_data")
    request = plain(
        PRODUCE,
        acks=-1,
        topic_data=[
            topic(name="a", partition_data=[data(index=0), data(index=3)]),
            topic(name="b", partition_data=[data(index=1)]),
        ],
    )
    answer, header, frame = answer_to(request, 9)
    told: Any = answer
    assert [
        (each.name, [(part.index, part.error_code) for part in each.partition_responses])
        for each in told.responses
    ] == [("a", [(0, CODE), (3, CODE)]), ("b", [(1, CODE)])]
    assert not wants_no_answer(header, frame)


def test_produce_without_acks_wants_no_answer() -> None:
    _, header, frame = answer_to(plain(PRODUCE, acks=0), 9)
    assert wants_no_answer(header, frame)


def test_plain_lists_are_named_again_too() -> None:
    coordinators: Any = answer_to(plain(FIND_COORDINATOR, coordinator_keys=["g", "h"]), 6)[0]
    assert [each.key for each in coordinators.coordinators] == ["g", "h"]
    deleted: Any = answer_to(plain(DELETE_TOPICS, topic_names=["a", "b"]), 5)[0]
    assert [each.name for each in deleted.responses] == ["a", "b"]


def test_a_fetch_is_refused_by_partitions_and_its_session_by_session_errors() -> None:
    topic, part = items(FETCH, "topics"), items(FETCH, "topics", "partitions")
    request = plain(FETCH, session_id=5, topics=[topic(topic="a", partitions=[part(partition=2)])])
    by_partition: Any = answer_to(request, 11)[0]
    assert (by_partition.error_code, by_partition.session_id) == (0, 0)
    assert by_partition.responses[0].partitions[0].partition_index == 2
    assert by_partition.responses[0].partitions[0].error_code == CODE

    by_session: Any = answer_to(request, 11, ErrorCode.FETCH_SESSION_ID_NOT_FOUND)[0]
    assert by_session.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert by_session.responses == []


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (plain(FETCH, session_id=5, session_epoch=3), 11),
        (plain(METADATA, topics=None), 9),
        (plain(LIST_OFFSETS, topics=[]), 7),
    ],
)
def test_a_request_whose_answer_has_no_place_for_an_error_is_let_through(
    request_: Message, version: int
) -> None:
    assert answer_to(request_, version)[0] is None


def test_what_cannot_be_read_is_left_to_the_node() -> None:
    for version in (9, 99):
        header = RequestHeader(PRODUCE, version, 1, "app", 0)
        assert error_answer(header, memoryview(b"\0\0"), CODE) is None
