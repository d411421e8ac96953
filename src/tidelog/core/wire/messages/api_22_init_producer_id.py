"""InitProducerId (api key 22): the id and epoch under which a producer numbers its batches.

Version 3 lets a producer keep its id and ask for a newer epoch. Version 6 belongs to two-phase
commit, which is not served.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, int16, int32, int64, string


class InitProducerIdRequest(Message, api_key=22, versions="0-5", flexible_from=2):
    """A producer asks for an id; with a transactional id, for that of its transactions."""

    transactional_id: str | None = string(nullable="0+")
    transaction_timeout_ms: int = int32()
    producer_id: int = int64("3+", default=-1)
    producer_epoch: int = int16("3+", default=-1)


class InitProducerIdResponse(Message, api_key=22, versions="0-5", flexible_from=2):
    """The identity that it may use."""

    throttle_time_ms: int = int32(ignorable=True)
    error_code: int = int16()
    producer_id: int = int64(default=-1)
    producer_epoch: int = int16()
