"""JoinGroup (api key 11): become a member of a classic group's next generation.

Version 1 has a rebalance timeout of its own, 4 wants members to ask for an id first, 5 has static
members, 6 is flexible, 7 answers the protocol type, 8 says why, 9 may tell a leader to skip the
assignment.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, boolean, bytes_, int16, int32, string


class JoinGroupRequestProtocol(Struct):
    """One protocol that the member supports, and what it says about itself in it."""

    name: str = string()
    metadata: bytes | memoryview = bytes_()


class JoinGroupRequest(Message, api_key=11, versions="0-9", flexible_from=6):
    """Let me in."""

    group_id: str = string()
    session_timeout_ms: int = int32()
    rebalance_timeout_ms: int = int32("1+", default=-1, ignorable=True)
    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None)
    protocol_type: str = string()
    protocols: list[JoinGroupRequestProtocol] = array(JoinGroupRequestProtocol)
    reason: str | None = string("8+", nullable="8+", default=None, ignorable=True)


class JoinGroupResponseMember(Struct):
    """A member, as the leader must know it to assign partitions."""

    member_id: str = string()
    group_instance_id: str | None = string("5+", nullable="5+", default=None, ignorable=True)
    metadata: bytes | memoryview = bytes_()


class JoinGroupResponse(Message, api_key=11, versions="0-9", flexible_from=6):
    """The generation, and for its leader all members."""

    throttle_time_ms: int = int32("2+", ignorable=True)
    error_code: int = int16()
    generation_id: int = int32(default=-1)
    protocol_type: str | None = string("7+", nullable="7+", default=None, ignorable=True)
    protocol_name: str | None = string(nullable="7+")
    leader: str = string()
    skip_assignment: bool = boolean("9+")
    member_id: str = string()
    members: list[JoinGroupResponseMember] = array(JoinGroupResponseMember)
