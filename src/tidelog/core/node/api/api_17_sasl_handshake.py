"""SaslHandshake (api key 17), versions 0 and 1: a node begins to prove that it is a member.

The only mechanism is SCRAM-SHA-256 with the secret of the cluster. A node without a secret, and a
connection that is a member's already, answer as a listener without SASL does in Kafka. So does
version 0, after which the proof would come without frames.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_17_sasl_handshake import (
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)
from tidelog.core.wire.scram import MECHANISM

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 17
VERSIONS = range(2)
_FIRST_VERSION_WITH_FRAMES = 1


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(SaslHandshakeRequest)
    connection = request.connection
    assert connection is not None, "never forwarded"
    may_begin = node.membership.has_secret and not connection.is_member
    if not may_begin or request.version < _FIRST_VERSION_WITH_FRAMES:
        request.answer(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
        return
    if call.mechanism != MECHANISM:
        code = ErrorCode.UNSUPPORTED_SASL_MECHANISM
        request.answer(SaslHandshakeResponse(error_code=code, mechanisms=[MECHANISM]))
        return
    connection.begin_proof(node.membership.challenge())
    request.answer(SaslHandshakeResponse(mechanisms=[MECHANISM]))
