"""DescribeTransactions (api key 65), version 0.

Each transactional id is described by its own coordinator; the answer has them in the order of the
request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.model.errors import ErrorCode
from tidelog.core.transactions.transaction_descriptions import describe_transaction
from tidelog.core.wire.messages.api_65_describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node
    from tidelog.core.transactions.transaction_shard import TransactionShard

API_KEY = 65
VERSIONS = range(1)
WAITS_FOR_METADATA = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(DescribeTransactionsRequest)
    node.transaction_coordinator.submit_many(
        request,
        call.transactional_ids,
        _describe,
        refuse=_refuse,
        combine=lambda states: DescribeTransactionsResponse(transaction_states=states),
        now_ms=now_ms,
    )


def _describe(
    shard: TransactionShard, transactional_id: str, reply_to: ReplyTo, _now_ms: int
) -> Outcome:
    return Outcome(replies=[(reply_to, describe_transaction(shard, transactional_id))])


def _refuse(transactional_id: str, error: ErrorCode) -> TransactionState:
    """An empty id is wrong wherever its coordinator would be."""
    if not transactional_id:
        error = ErrorCode.INVALID_REQUEST
    return TransactionState(transactional_id=transactional_id, error_code=error)
