"""InitProducerId (api key 22), versions 0 to 5.

A producer without a transactional id gets an id that was never given before, with producer epoch 0;
the earlier identity in its request does not matter. While there is no controller to give ids, it
gets Kafka's COORDINATOR_LOAD_IN_PROGRESS after a moment, and tries again. Transactions are not
served yet: a producer with a transactional id gets NOT_COORDINATOR, as from a broker of Kafka that
does not coordinate it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_22_init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from tidelog.core.wire.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 22
VERSIONS = range(6)

_NEW_PRODUCER_EPOCH = 0


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(InitProducerIdRequest)
    timeout_ms_max = node.settings.integer("transaction.max.timeout.ms")
    error = refuse(call, timeout_ms_max=timeout_ms_max)
    if error != ErrorCode.NONE:
        request.answer(_refusal(error))
        return

    def on_producer_id(producer_id: int | None) -> None:
        if producer_id is None:
            request.answer(_refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        request.answer(
            InitProducerIdResponse(producer_id=producer_id, producer_epoch=_NEW_PRODUCER_EPOCH)
        )

    node.producer_ids.take(on_producer_id, now_ms=now_ms)


def _refusal(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )


def refuse(call: InitProducerIdRequest, *, timeout_ms_max: int) -> ErrorCode:
    """The first reason to say no."""
    if (call.producer_id == NO_PRODUCER_ID) != (call.producer_epoch == NO_PRODUCER_EPOCH):
        return ErrorCode.INVALID_REQUEST
    if call.transactional_id is None:
        return ErrorCode.NONE
    if not call.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not 0 < call.transaction_timeout_ms <= timeout_ms_max:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NOT_COORDINATOR
