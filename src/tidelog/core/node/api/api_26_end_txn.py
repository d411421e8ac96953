"""EndTxn (api key 26), versions 0 to 5: commit or abort.

Answered when the decision is committed to `__transaction_state`: from then on it stands, whoever
dies, and the markers follow (coordinators/marker_sender.py). From version 5 on every transaction
has a producer epoch of its own, and the answer has the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.model.limits import EPOCH_PER_TRANSACTION
from tidelog.core.transactions.transaction_calls import EndTransactionCall, ProducerAnswer
from tidelog.core.transactions.transaction_metadata import CLASSIC
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest, EndTxnResponse
from tidelog.core.wire.sentinels import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 26
VERSIONS = range(6)
WAITS_FOR_METADATA = True

_FIRST_VERSION_WITH_EPOCHS = 5
_FIRST_VERSION_WITH_FENCED = 2


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(EndTxnRequest)
    version = request.version

    def then(answer: ProducerAnswer) -> None:
        error, producer = answer.error, answer.producer
        if error is ErrorCode.PRODUCER_FENCED and version < _FIRST_VERSION_WITH_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        if error is not ErrorCode.NONE or producer is None:
            producer = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)
        request.answer(
            EndTxnResponse(
                error_code=error,
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
            )
        )

    if not call.transactional_id:
        then(ProducerAnswer(ErrorCode.INVALID_REQUEST))
        return
    has_epochs = version >= _FIRST_VERSION_WITH_EPOCHS
    node.transaction_coordinator.end_transaction(
        EndTransactionCall(
            transactional_id=call.transactional_id,
            producer=ProducerIdAndEpoch(call.producer_id, call.producer_epoch),
            is_commit=call.committed,
            client_version=EPOCH_PER_TRANSACTION if has_epochs else CLASSIC,
        ),
        then,
        now_ms,
    )
