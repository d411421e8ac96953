"""ListTransactions (api key 66): the transactional ids that this broker coordinates.

Version 1 filters by duration, 2 by a regular expression over the ids.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int16, int32, int64, string


class ListTransactionsRequest(Message, api_key=66, versions="0-2", flexible_from=0):
    """Which transactions pass all of these filters? An empty filter lets all pass."""

    state_filters: list[str] = array(string)
    producer_id_filters: list[int] = array(int64)
    duration_filter: int = int64("1+", default=-1)  # milliseconds; negative: any
    transactional_id_pattern: str | None = string("2+", nullable="2+", default=None)


class ListedTransaction(Struct):
    """One transactional id, its producer, and the state of its transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    transaction_state: str = string()


class ListTransactionsResponse(Message, api_key=66, versions="0-2", flexible_from=0):
    """The transactions, and the states of the filter that are not known."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    unknown_state_filters: list[str] = array(string)
    transaction_states: list[ListedTransaction] = array(ListedTransaction)
