"""InitProducerId (api key 22), versions 0 to 5.

An idempotent producer gets a number of its own, whatever it had before: the id and epoch that it
may carry in its request do not matter. A producer with a transactional id gets the id's number with
the next epoch, which fences whoever had it before, from the id's coordinator. While there is no
controller to give ids, it gets Kafka's COORDINATOR_LOAD_IN_PROGRESS after a moment, and retries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.transactions.transaction_calls import InitProducerCall, ProducerAnswer
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
_FIRST_VERSION_WITH_FENCED = 4


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(InitProducerIdRequest)
    timeout_ms_max = node.settings.integer("transaction.max.timeout.ms")
    error = refuse(call, timeout_ms_max=timeout_ms_max)
    if error != ErrorCode.NONE:
        request.answer(_refusal(error))
    elif call.transactional_id is None:
        _init_idempotent(node, request, now_ms)
    else:
        _init_transactional(node, request, call, call.transactional_id, now_ms)


def _init_idempotent(node: Node, request: Request, now_ms: int) -> None:
    def on_producer_id(producer_id: int | None) -> None:
        if producer_id is None:
            request.answer(_refusal(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))
            return
        request.answer(
            InitProducerIdResponse(producer_id=producer_id, producer_epoch=_NEW_PRODUCER_EPOCH)
        )

    node.producer_ids.take(on_producer_id, now_ms=now_ms)


def _init_transactional(
    node: Node, request: Request, call: InitProducerIdRequest, transactional_id: str, now_ms: int
) -> None:
    expected = None
    if call.producer_id != NO_PRODUCER_ID:
        expected = ProducerIdAndEpoch(call.producer_id, call.producer_epoch)

    def then(answer: ProducerAnswer) -> None:
        producer = answer.producer
        if answer.error is ErrorCode.NONE and producer is not None:
            request.answer(
                InitProducerIdResponse(
                    producer_id=producer.producer_id, producer_epoch=producer.producer_epoch
                )
            )
            return
        error = answer.error
        if error is ErrorCode.PRODUCER_FENCED and request.version < _FIRST_VERSION_WITH_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        request.answer(_refusal(error))

    node.transaction_coordinator.init_producer(
        InitProducerCall(
            transactional_id=transactional_id,
            timeout_ms=call.transaction_timeout_ms,
            expected=expected,
        ),
        then,
        now_ms,
    )


def _refusal(error: ErrorCode) -> InitProducerIdResponse:
    return InitProducerIdResponse(
        error_code=error, producer_id=NO_PRODUCER_ID, producer_epoch=NO_PRODUCER_EPOCH
    )


def refuse(call: InitProducerIdRequest, *, timeout_ms_max: int) -> ErrorCode:
    """The first reason to say no that needs no coordinator."""
    if (call.producer_id == NO_PRODUCER_ID) != (call.producer_epoch == NO_PRODUCER_EPOCH):
        return ErrorCode.INVALID_REQUEST
    if call.transactional_id is None:
        return ErrorCode.NONE
    if not call.transactional_id:
        return ErrorCode.INVALID_REQUEST
    if not 0 < call.transaction_timeout_ms <= timeout_ms_max:
        return ErrorCode.INVALID_TRANSACTION_TIMEOUT
    return ErrorCode.NONE
