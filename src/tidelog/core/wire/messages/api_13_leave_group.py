"""LeaveGroup (api key 13): remove members from a classic group at once.

Version 3 removes many, also static ones by their instance id, 4 is flexible, 5 says why.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int16, int32, string


class LeaveGroupRequestMember(Struct):
    """Who leaves: a member id, an instance id, or both."""

    member_id: str = string()
    group_instance_id: str | None = string(nullable="3+", default=None)
    reason: str | None = string("5+", nullable="5+", default=None, ignorable=True)


class LeaveGroupRequest(Message, api_key=13, versions="0-5", flexible_from=4):
    """These leave."""

    group_id: str = string()
    member_id: str = string("0-2")
    members: list[LeaveGroupRequestMember] = array(LeaveGroupRequestMember, "3+")


class LeaveGroupResponseMember(Struct):
    """Whether one member was removed."""

    member_id: str = string()
    group_instance_id: str | None = string(nullable="3+")
    error_code: int = int16()


class LeaveGroupResponse(Message, api_key=13, versions="0-5", flexible_from=4):
    """Who was removed."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    members: list[LeaveGroupResponseMember] = array(LeaveGroupResponseMember, "3+")
