"""AddOffsetsToTxn (api key 25): a group whose offsets a transaction is going to commit."""

from __future__ import annotations

from tidelog.core.wire.schema import Message, int16, int32, int64, string


class AddOffsetsToTxnRequest(Message, api_key=25, versions="0-4", flexible_from=3):
    """Let the offsets of this group belong to the transaction."""

    transactional_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    group_id: str = string()


class AddOffsetsToTxnResponse(Message, api_key=25, versions="0-4", flexible_from=3):
    """Whether they do now."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
