"""Requests that did not come over a connection of their own.

A node asks its own controller with a message, and nobody encodes it. A client's request that
another node passed on comes as bytes in an envelope, and its answer goes back as bytes. The API
files handle both like any other request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.ports import Part
from tidelog.core.node.request import Request
from tidelog.core.wire.headers import read_request_header
from tidelog.core.wire.schema import Message

M = TypeVar("M", bound=Message)
_SIZE_BYTES = 4
_NOBODY = memoryview(b"")


class OwnRequest(Request):
    """This node asks itself: `then` gets the answer as a message."""

    __slots__ = ("_message", "_then")

    def __init__(self, message: Message, version: int, then: Callable[[Message], None]) -> None:
        super().__init__(None, message.api_key, version, 0, None, _NOBODY)
        self._message = message
        self._then = then

    def decode(self, message: type[M]) -> M:
        assert isinstance(self._message, message)
        return self._message

    def answer(self, message: Message) -> None:
        assert self.parts is None, "a request is answered once"
        self.parts = ()
        self._then(message)


class WrappedRequest(Request):
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
