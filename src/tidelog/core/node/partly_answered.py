"""A client's request of which this node has answered a part, while the rest is passed on."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.node.ports import Part
from tidelog.core.node.request import Request
from tidelog.core.wire.codec import encode
from tidelog.core.wire.headers import read_response_header, request_header
from tidelog.core.wire.schema import Message

Merge = Callable[[memoryview], Message]
"""Gets the body of the answer to the rest, and makes the answer to the whole."""


class PartlyAnswered(Request):
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
