"""AllocateProducerIds (api key 67), version 0; between brokers and controller only.

A broker gets a block of producer ids that no other broker ever gets.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.controller.committed_answers import answer_when_committed
from tidelog.core.wire.messages.api_67_allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 67
VERSIONS = range(1)
BETWEEN_NODES = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(AllocateProducerIdsRequest)
    not_controller = AllocateProducerIdsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    if not node.metadata.is_active:
        request.answer(not_controller)
        return
    block = node.active_controller.reserve_producer_ids(
        broker_id=call.broker_id, broker_epoch=call.broker_epoch, now_ms=now_ms
    )
    if isinstance(block, ErrorCode):
        answer = AllocateProducerIdsResponse(error_code=block)
    else:
        answer = AllocateProducerIdsResponse(
            producer_id_start=block.start, producer_id_len=len(block)
        )
    answer_when_committed(node.metadata, request, answer, otherwise=not_controller, now_ms=now_ms)
