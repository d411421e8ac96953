"""EndTxn (api key 26): commit or abort, the one word that decides about a transaction.

From version 5 on the answer gives the producer a new epoch for its next transaction.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, boolean, int16, int32, int64, string


class EndTxnRequest(Message, api_key=26, versions="0-5", flexible_from=3):
    """End the transaction of this producer."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    committed: bool = boolean()


class EndTxnResponse(Message, api_key=26, versions="0-5", flexible_from=3):
    """Whether it is decided."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id: int = int64("5+", default=-1, ignorable=True)
    producer_epoch: int = int16("5+", default=-1, ignorable=True)
