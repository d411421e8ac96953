"""Error answers made from requests: what was asked for is named again, each with the error.

Nothing is known about single APIs. An answer's list of things that can fail is filled from the
request's list of the same name, or from its first one; of each thing only what identifies it is
copied. The error stands as deep as it can: with partitions rather than at the top, where clients
take it for trouble with the whole request.
"""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.codec import MalformedMessage, decode
from tidelog.core.wire.headers import RequestHeader
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages.api_00_produce import ProduceRequest
from tidelog.core.wire.schema import Array, Field, Message, Nested, Struct

ERRORS = ("error_code", "partition_error_code")
"""What the field is called that has the error of a thing."""
FETCH = 1
SESSION_ERRORS = frozenset(
    {
        ErrorCode.FETCH_SESSION_ID_NOT_FOUND,
        ErrorCode.INVALID_FETCH_SESSION_EPOCH,
        ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR,
    }
)
"""These are about a whole Fetch; no other error is."""

_PARTITION = frozenset({"index", "partition", "partition_index", "partition_id"})
_SAME = (
    _PARTITION,
    frozenset({"name", "topic", "topic_name", "key"}),
    *(
        frozenset({name})
        for name in ("topic_id", "resource_type", "resource_name", "feature", "id_")
    ),
)
"""What identifies a thing, by all names that it has in requests and answers."""


def error_answer(header: RequestHeader, frame: memoryview, code: ErrorCode) -> Message | None:
    """None if the answer has no place for it, or the request cannot be read: let it pass."""
    request_type, answer_type = MESSAGES[header.api_key]
    version = header.api_version
    if version not in request_type.versions:
        return None
    try:
        request = decode(request_type, frame, version, header.body_position, rest_allowed=True)
    except MalformedMessage:
        return None
    answer = answer_type()
    is_session_error = header.api_key == FETCH and code in SESSION_ERRORS
    if not is_session_error and _fill_lists(answer, request, version, code):
        return answer
    if header.api_key == FETCH and not is_session_error:
        return None  # it names no partition: a session's quiet fetch
    return answer if _put_error(answer, version, code) else None


def wants_no_answer(header: RequestHeader, frame: memoryview) -> bool:
    """Produce with acks=0."""
    if header.api_key != ProduceRequest.api_key:
        return False
    request = decode(
        ProduceRequest, frame, header.api_version, header.body_position, rest_allowed=True
    )
    return request.acks == 0


def _fill(answer: Struct, request: object, version: int, code: ErrorCode) -> bool:
    """Whether there is an error in it now."""
    for field in type(answer).schema:
        _copy_identity(answer, field.name, request)
    return _fill_lists(answer, request, version, code) or _put_error(answer, version, code)


def _fill_lists(answer: Struct, request: object, version: int, code: ErrorCode) -> bool:
    has_error = False
    for field in type(answer).schema:
        kind = _struct_of_items(field)
        if kind is None or not field.exists_in(version) or not _can_fail(kind):
            continue
        filled: list[Struct] = []
        for each in _requested_list(request, field.name, version):
            filled.append(kind())
            has_error |= _fill(filled[-1], each, version, code)
        setattr(answer, field.name, filled)
    return has_error


def _put_error(answer: Struct, version: int, code: ErrorCode) -> bool:
    for field in type(answer).schema:
        if field.name in ERRORS and field.exists_in(version):
            setattr(answer, field.name, int(code))
            return True
    return False


def _copy_identity(answer: Struct, name: str, request: object) -> None:
    names = next((same for same in _SAME if name in same), None)
    if names is None:
        return
    if isinstance(request, Struct):
        for field in type(request).schema:
            if field.name in names:
                setattr(answer, name, getattr(request, field.name))
    elif isinstance(request, int) == (names is _PARTITION):
        setattr(answer, name, request)  # a plain number or name in a list


def _requested_list(request: object, name: str, version: int) -> list[object]:
    """The request's list of that name, else its first one, whatever it is called."""
    if not isinstance(request, Struct):
        return []
    lists = [
        field
        for field in type(request).schema
        if isinstance(field.kind, Array) and field.exists_in(version)
    ]
    lists.sort(key=lambda field: field.name != name)
    found = getattr(request, lists[0].name) if lists else None
    return list(found or ())


def _struct_of_items(field: Field) -> type[Struct] | None:
    if isinstance(field.kind, Array) and isinstance(field.kind.item, Nested):
        return field.kind.item.struct
    return None


def _can_fail(kind: type[Struct]) -> bool:
    items = (_struct_of_items(field) for field in kind.schema)
    return any(field.name in ERRORS for field in kind.schema) or any(
        item is not None and _can_fail(item) for item in items
    )
