"""Requests on their way to the active controller, which the API files handle like any other.

A node's request to its own controller is a message that is never encoded. A client's request that
another node forwards comes as bytes in an envelope, and its answer goes back as bytes. Where a
node answers a part of a request itself, only the remainder is forwarded.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.connections.request import Request
from tidelog.core.node.ports import Part
from tidelog.core.wire.codec import encode
from tidelog.core.wire.headers import read_request_header, read_response_header, request_header
from tidelog.core.wire.schema import Message

M = TypeVar("M", bound=Message)
_SIZE_BYTES = 4
_NO_BODY = memoryview(b"")


class LocalRequest(Request):
    """This node asks itself: `then` gets the answer as a message."""

    __slots__ = ("_message", "_then")

    def __init__(self, message: Message, version: int, then: Callable[[Message], None]) -> None:
        super().__init__(None, message.api_key, version, 0, None, _NO_BODY)
        self._message = message
        self._then = then

    def decode(self, message: type[M]) -> M:
        assert isinstance(self._message, message)
        return self._message

    def answer(self, message: Message) -> None:
        assert self.parts is None, "a request is answered once"
        self.parts = ()
        self._then(message)


class EnvelopedRequest(Request):
    """A client's whole request as another node sent it; `then` gets the whole answer.

    It gets None if this node is not the controller (any more). After `abandon` an answer goes
    nowhere: the node that decided on it no longer may.
    """

    __slots__ = ("_then",)

    def __init__(self, frame: memoryview, then: Callable[[bytes | None], None]) -> None:
        header = read_request_header(frame)
        super().__init__(
            None,
            header.api_key,
            header.api_version,
            header.correlation_id,
            header.client_id,
            frame[header.body_position :],
        )
        self._then: Callable[[bytes | None], None] | None = then

    def abandon(self) -> None:
        self._then = None

    def answer(self, message: Message) -> None:
        if getattr(message, "error_code", None) != ErrorCode.NOT_CONTROLLER:
            super().answer(message)
        elif self._then is not None:
            self.parts = ()
            self._then(None)

    def _done(self, parts: Sequence[Part]) -> None:
        assert self.parts is None, "a request is answered once"
        self.parts = parts
        if self._then is not None:
            whole = b"".join(cast("Sequence[bytes]", parts))
            self._then(whole[_SIZE_BYTES:])


Merge = Callable[[memoryview], Message]
"""Gets the body of the answer to the rest, and makes the answer to the whole."""


class RemainderRequest(Request):
    """Takes the place of the whole request on the way to the controller."""

    __slots__ = ("_merge", "_whole", "frame")

    def __init__(self, whole: Request, rest: Message, merge: Merge) -> None:
        body = encode(rest, whole.version)
        super().__init__(
            whole.connection,
            whole.api_key,
            whole.version,
            whole.correlation_id,
            whole.client_id,
            memoryview(body),
        )
        head = request_header(
            whole.api_key,
            whole.version,
            correlation_id=whole.correlation_id,
            client_id=whole.client_id,
        )
        self.frame = memoryview(head + body)
        """The request for the rest, without its size."""
        self._whole = whole
        self._merge = merge

    def answer_parts(self, parts: list[Part]) -> None:
        """The rest was answered, header included."""
        (answer,) = parts
        assert isinstance(answer, bytes)
        view = memoryview(answer)
        _, position = read_response_header(view, self.api_key, self.version)
        self._whole.answer(self._merge(view[position:]))
