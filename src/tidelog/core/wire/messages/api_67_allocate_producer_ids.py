"""AllocateProducerIds (api key 67): a broker asks the controller for a block of producer ids."""

from __future__ import annotations

from tidelog.core.wire.schema import Message, int16, int32, int64


class AllocateProducerIdsRequest(Message, api_key=67, versions="0", flexible_from=0):
    """Which broker needs a block."""

    broker_id: int = int32()
    broker_epoch: int = int64(default=-1)


class AllocateProducerIdsResponse(Message, api_key=67, versions="0", flexible_from=0):
    """The first id of the block, and how many there are."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    producer_id_start: int = int64()
    producer_id_len: int = int32()
