"""One request, which waits in its connection's queue until it is answered."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Protocol, TypeVar

from tidelog.core.node.ports import Part
from tidelog.core.storage.disk import FileSlice
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import response_header
from tidelog.core.wire.schema import Message

if TYPE_CHECKING:
    from tidelog.core.node.connections.connection import Connection

_SIZE = Struct(">i")
M = TypeVar("M", bound=Message)


class Parked(Protocol):
    """What holds a request back, and must know when its connection is gone."""

    def drop(self) -> None: ...


class ParkedForData(Protocol):
    """A parked request that is assembled again when something moved."""

    def look_again(self, now_ms: int) -> None: ...


class Request:
    """Answered once, at any later time; the connection keeps the order.

    `body` is a view into the receive buffer: valid only while the handler runs. Without a
    connection it is one of those in forwarded_requests.py.
    """

    __slots__ = (
        "api_key",
        "body",
        "client_id",
        "connection",
        "correlation_id",
        "parked",
        "parts",
        "version",
    )

    def __init__(
        self,
        connection: Connection | None,
        api_key: int,
        version: int,
        correlation_id: int,
        client_id: str | None,
        body: memoryview,
    ) -> None:
        self.connection = connection
        self.api_key = api_key
        self.version = version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.body: memoryview | None = body
        self.parts: Sequence[Part] | None = None
        self.parked: Parked | None = None

    def decode(self, message: type[M]) -> M:
        """The body as a message. Raises MalformedMessage, which closes the connection.

        Bytes after its end are ignored, as Kafka does: librdkafka asks for the metadata of all
        topics with three bytes too many.
        """
        assert self.body is not None, "the frame is gone: decode before you park"
        return decode(message, self.body, self.version, rest_allowed=True)

    def answer(self, message: Message) -> None:
        """Answer with a message in this request's version."""
        self.answer_bytes(encode(message, self.version))

    def answer_bytes(self, body: bytes | bytearray) -> None:
        header = self.header()
        size = _SIZE.pack(len(header) + len(body))
        self._done((b"".join((size, header, body)),))

    def answer_parts(self, parts: list[Part]) -> None:
        """Answer with parts that already hold header and body; the size is put in front."""
        total = 0
        for part in parts:
            total += part.size_bytes if isinstance(part, FileSlice) else len(part)
        parts.insert(0, _SIZE.pack(total))
        self._done(parts)

    def answer_nothing(self) -> None:
        """The client expects no answer (acks=0): leave the queue."""
        self._done(())

    def header(self) -> bytes:
        return response_header(self.api_key, self.version, self.correlation_id)

    def close(self, reason: str) -> None:
        """Drop the whole connection instead of answering."""
        assert self.connection is not None, f"{reason}: only a connection can be closed"
        self.connection.fail(reason)

    @property
    def connection_id(self) -> int | None:
        """None if it came from this node itself, or through another one."""
        return None if self.connection is None else self.connection.id

    @property
    def is_from_member(self) -> bool:
        """Of a node of the cluster: this one, or one that has proved it."""
        return self.connection is None or self.connection.is_member

    def _done(self, parts: Sequence[Part]) -> None:
        assert self.parts is None, "a request is answered once"
        self.parts = parts
        assert self.connection is not None, "the others have their own way"
        self.connection.on_answered()


Handle = Callable[[Request, int], None]
"""What answers a request, now or later: the API file of its key."""
