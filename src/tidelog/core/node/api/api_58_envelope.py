"""Envelope (api key 58), version 0: a client's request that another node forwards.

Only the active controller decides it; every other node answers NOT_CONTROLLER, and the sender tries
again where it now believes the controller to be. A request that cannot be read, or whose API is not
forwarded, is refused by every node. The principal and the address of the client are ignored:
without an authorizer everybody may do everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.codec import decode
from tidelog.core.wire.headers import read_request_header
from tidelog.core.wire.malformed import MalformedMessage
from tidelog.core.wire.messages import MESSAGES
from tidelog.core.wire.messages.api_58_envelope import EnvelopeRequest, EnvelopeResponse

if TYPE_CHECKING:
    from tidelog.core.node.api import Api
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 58
VERSIONS = range(1)
BETWEEN_NODES = True
_GONE = range(4, 8)
"""API keys that were between brokers once: they have no version that could be read."""


def handle(node: Node, request: Request, now_ms: int) -> None:
    from tidelog.core.node.api import HANDLERS  # the list of all these files, this one included

    inner = memoryview(bytes(request.decode(EnvelopeRequest).request_data))
    error = _refuse(inner, HANDLERS)
    if error is ErrorCode.NONE and not node.metadata.is_active:
        error = ErrorCode.NOT_CONTROLLER
    if error is not ErrorCode.NONE:
        request.answer(EnvelopeResponse(error_code=error))
        return

    def decided(answer: bytes | None, now_ms: int) -> None:
        code = ErrorCode.NOT_CONTROLLER if answer is None else ErrorCode.NONE
        request.answer(EnvelopeResponse(response_data=answer, error_code=code))

    node.forwarder.decide(inner, decided, now_ms)


def _refuse(inner: memoryview, handlers: Mapping[int, Api]) -> ErrorCode:
    """Kafka's code for what cannot be read is UNSUPPORTED_VERSION, whatever is wrong with it."""
    try:
        header = read_request_header(inner)
        api = handlers.get(header.api_key)
        if header.api_key in _GONE:
            return ErrorCode.UNSUPPORTED_VERSION
        if api is None or not api.is_forwarded:
            return ErrorCode.INVALID_REQUEST
        if header.api_version not in api.versions:
            return ErrorCode.UNSUPPORTED_VERSION
        body = inner[header.body_position :]
        decode(MESSAGES[header.api_key][0], body, header.api_version, rest_allowed=True)
    except MalformedMessage:
        return ErrorCode.UNSUPPORTED_VERSION
    return ErrorCode.NONE
