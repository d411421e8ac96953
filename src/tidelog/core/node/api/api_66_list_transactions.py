"""ListTransactions (api key 66), versions 0 to 2: the transactional ids of this coordinator.

Clients ask every broker. A partition that is still loading makes the whole answer an error: a list
with holes would look like transactions that are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.regex_syntax import InvalidRegex
from tidelog.core.groups.topic_regex import AnyNameRegex
from tidelog.core.model.errors import ErrorCode
from tidelog.core.transactions.transaction_descriptions import (
    TransactionFilters,
    list_transactions,
    unknown_states,
)
from tidelog.core.wire.messages.api_66_list_transactions import (
    ListedTransaction,
    ListTransactionsRequest,
    ListTransactionsResponse,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node
    from tidelog.core.transactions.transaction_shard import TransactionShard

API_KEY = 66
VERSIONS = range(3)
WAITS_FOR_METADATA = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(ListTransactionsRequest)
    pattern = call.transactional_id_pattern
    try:
        matches_id = AnyNameRegex(pattern).matches if pattern else None
    except InvalidRegex:
        error = ErrorCode.INVALID_REGULAR_EXPRESSION
        request.answer(ListTransactionsResponse(error_code=error))
        return
    filters = TransactionFilters(
        states=frozenset(call.state_filters),
        producer_ids=frozenset(call.producer_id_filters),
        longer_than_ms=None if call.duration_filter < 0 else call.duration_filter,
        matches_id=matches_id,
    )

    def list_here(shard: TransactionShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        listed = list_transactions(shard, filters, wall_ms=node.wall_ms(now_ms))
        return Outcome(replies=[(reply_to, listed)])

    def answer(parts: list[list[ListedTransaction] | ErrorCode]) -> ListTransactionsResponse:
        return combine(parts, unknown=unknown_states(call.state_filters))

    node.transaction_coordinator.submit_everywhere(
        request, list_here, refuse=lambda error: error, combine=answer, now_ms=now_ms
    )


def combine(
    parts: list[list[ListedTransaction] | ErrorCode], *, unknown: list[str]
) -> ListTransactionsResponse:
    """A partition that moved away meanwhile is listed by its new coordinator."""
    response = ListTransactionsResponse(unknown_state_filters=unknown)
    for part in parts:
        if isinstance(part, list):
            response.transaction_states += part
        elif part is not ErrorCode.NOT_COORDINATOR:
            return ListTransactionsResponse(error_code=part)
    return response
