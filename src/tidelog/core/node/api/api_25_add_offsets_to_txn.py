"""AddOffsetsToTxn (api key 25), versions 0 to 4: a group's offsets shall belong to the transaction.

That is, the group's partition of `__consumer_offsets`, to which TxnOffsetCommit writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.model.topic_name import OFFSETS_TOPIC
from tidelog.core.transactions.transaction_calls import AddPartitionsCall
from tidelog.core.transactions.transaction_metadata import CLASSIC
from tidelog.core.transactions.transaction_shard import TransactionShard
from tidelog.core.wire.messages.api_25_add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 25
VERSIONS = range(5)
WAITS_FOR_METADATA = True

_FIRST_VERSION_WITH_FENCED = 2


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(AddOffsetsToTxnRequest)
    partition = (OFFSETS_TOPIC, node.group_coordinator.partition_of(call.group_id))

    def answer(error: ErrorCode) -> AddOffsetsToTxnResponse:
        if error is ErrorCode.PRODUCER_FENCED and request.version < _FIRST_VERSION_WITH_FENCED:
            error = ErrorCode.INVALID_PRODUCER_EPOCH
        return AddOffsetsToTxnResponse(error_code=error)

    if not call.transactional_id:
        request.answer(answer(ErrorCode.INVALID_REQUEST))
        return

    def add(shard: TransactionShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        return shard.add_partitions(
            AddPartitionsCall(
                transactional_id=call.transactional_id,
                producer=ProducerIdAndEpoch(call.producer_id, call.producer_epoch),
                partitions=frozenset({partition}),
                client_version=CLASSIC,
                answer=answer,
            ),
            reply_to,
            now_ms,
        )

    node.transaction_coordinator.submit(
        request, call.transactional_id, add, refuse=answer, now_ms=now_ms
    )
