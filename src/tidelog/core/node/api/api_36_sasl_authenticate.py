"""SaslAuthenticate (api key 36), versions 0 to 2: the two steps of SCRAM after SaslHandshake.

With the second one the connection becomes a member's. A wrong proof is answered with
SASL_AUTHENTICATION_FAILED, and the connection is dropped, as in Kafka.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_36_sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from tidelog.core.wire.scram import BadProof

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 36
VERSIONS = range(3)


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(SaslAuthenticateRequest)
    connection = request.connection
    assert connection is not None, "never forwarded"
    if connection.proof is None:
        refusal = SaslAuthenticateResponse(
            error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message="there was no SaslHandshake"
        )
        request.answer(refusal)
        return
    try:
        answer = connection.continue_proof(bytes(call.auth_bytes))
    except BadProof as error:
        refusal = SaslAuthenticateResponse(
            error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=str(error)
        )
        request.answer(refusal)
        connection.fail(f"not authenticated: {error}")
        node.membership.on_bad_proof(connection.peer, str(error), now_ms)
        return
    request.answer(SaslAuthenticateResponse(auth_bytes=answer))
