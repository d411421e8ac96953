"""Heartbeat (api key 12): a member of a classic group is alive, and asks whether to rejoin.

Version 3 has static members, 4 is flexible.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, int16, int32, string


class HeartbeatRequest(Message, api_key=12, versions="0-4", flexible_from=4):
    """I am alive."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)


class HeartbeatResponse(Message, api_key=12, versions="0-4", flexible_from=4):
    """Whether the generation is still the member's."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
