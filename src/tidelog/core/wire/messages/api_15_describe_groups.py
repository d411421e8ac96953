"""DescribeGroups (api key 15): state and members of classic groups.

Version 3 may ask for authorized operations, 4 names static members, 5 is flexible, 6 answers
GROUP_ID_NOT_FOUND for a group that does not exist.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, boolean, bytes_, int16, int32, string


class DescribeGroupsRequest(Message, api_key=15, versions="0-6", flexible_from=5):
    """What about these groups?"""

    groups: list[str] = array(string)
    include_authorized_operations: bool = boolean("3+")


class DescribedGroupMember(Struct):
    """One member."""

    member_id: str = string()
    group_instance_id: str | None = string("4+", nullable="4+", default=None, ignorable=True)
    client_id: str = string()
    client_host: str = string()
    member_metadata: bytes | memoryview = bytes_()
    member_assignment: bytes | memoryview = bytes_()


class DescribedGroup(Struct):
    """One group."""

    error_code: int = int16()
    error_message: str | None = string("6+", nullable="6+", default=None, ignorable=True)
    group_id: str = string()
    group_state: str = string()
    protocol_type: str = string()
    protocol_data: str = string()
    members: list[DescribedGroupMember] = array(DescribedGroupMember)
    authorized_operations: int = int32("3+", default=-(2**31), ignorable=True)


class DescribeGroupsResponse(Message, api_key=15, versions="0-6", flexible_from=5):
    """The groups."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    groups: list[DescribedGroup] = array(DescribedGroup)
