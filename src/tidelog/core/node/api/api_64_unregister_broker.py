"""UnregisterBroker (api key 64), version 0.

An administrator says that a broker will not come back: its registration is removed, though its
replicas stay assigned to it. A broker that is alive registers again by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.controller.committed_answers import answer_when_committed
from tidelog.core.wire.messages.api_64_unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 64
VERSIONS = range(1)
FORWARDED = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(UnregisterBrokerRequest)
    not_controller = UnregisterBrokerResponse(
        error_code=ErrorCode.NOT_CONTROLLER, error_message=None
    )
    if not node.metadata.is_active:
        request.answer(not_controller)
        return
    answer = UnregisterBrokerResponse()
    refusal = node.active_controller.forget(call.broker_id, now_ms)
    if refusal is not None:
        answer.error_code, answer.error_message = refusal
    answer_when_committed(node.metadata, request, answer, otherwise=not_controller, now_ms=now_ms)
