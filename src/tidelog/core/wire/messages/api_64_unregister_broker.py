"""UnregisterBroker (api key 64): forget a broker that will not come back."""

from __future__ import annotations

from tidelog.core.wire.schema import Message, int16, int32, string


class UnregisterBrokerRequest(Message, api_key=64, versions="0", flexible_from=0):
    """Which broker to forget."""

    broker_id: int = int32()


class UnregisterBrokerResponse(Message, api_key=64, versions="0", flexible_from=0):
    """Whether it was forgotten."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
