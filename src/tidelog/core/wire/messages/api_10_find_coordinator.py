"""FindCoordinator (api key 10): which broker coordinates a group or a transactional id.

Version 1 names the kind of key, version 3 is flexible, 4 asks for many keys at once, 6 knows the
groups of share consumers.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int8, int16, int32, string


class FindCoordinatorRequest(Message, api_key=10, versions="0-6", flexible_from=3):
    """Who coordinates these?"""

    key: str = string("0-3")
    key_type: int = int8("1+")
    coordinator_keys: list[str] = array(string, "4+")


class Coordinator(Struct):
    """The coordinator of one key."""

    key: str = string()
    node_id: int = int32()
    host: str = string()
    port: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+", default=None, ignorable=True)


class FindCoordinatorResponse(Message, api_key=10, versions="0-6", flexible_from=3):
    """Their coordinators."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16("0-3")
    error_message: str | None = string("1-3", nullable="1-3", default=None, ignorable=True)
    node_id: int = int32("0-3")
    host: str = string("0-3")
    port: int = int32("0-3")
    coordinators: list[Coordinator] = array(Coordinator, "4+")
