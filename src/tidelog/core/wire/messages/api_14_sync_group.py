"""SyncGroup (api key 14): the leader hands in the assignment, each member fetches its own.

Version 3 has static members, 4 is flexible, 5 names the protocol that the assignment is for.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, bytes_, int16, int32, string


class SyncGroupRequestAssignment(Struct):
    """What one member gets."""

    member_id: str = string()
    assignment: bytes | memoryview = bytes_()


class SyncGroupRequest(Message, api_key=14, versions="0-5", flexible_from=4):
    """What do I get? From the leader: what each member gets."""

    group_id: str = string()
    generation_id: int = int32()
    member_id: str = string()
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignments: list[SyncGroupRequestAssignment] = array(SyncGroupRequestAssignment)


class SyncGroupResponse(Message, api_key=14, versions="0-5", flexible_from=4):
    """The member's assignment."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    protocol_type: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    protocol_name: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    assignment: bytes | memoryview = bytes_()
