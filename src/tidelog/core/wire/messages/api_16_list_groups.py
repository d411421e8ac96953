"""ListGroups (api key 16): the groups that this broker coordinates.

Version 3 is flexible, 4 filters by state, 5 by type.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int16, int32, string


class ListGroupsRequest(Message, api_key=16, versions="0-5", flexible_from=3):
    """Which groups are in one of these states and of one of these types? None named: all."""

    states_filter: list[str] = array(string, "4+")
    types_filter: list[str] = array(string, "5+")


class ListedGroup(Struct):
    """One group."""

    group_id: str = string()
    protocol_type: str = string()
    group_state: str = string("4+", ignorable=True)
    group_type: str = string("5+", ignorable=True)


class ListGroupsResponse(Message, api_key=16, versions="0-5", flexible_from=3):
    """The groups."""

    throttle_time_ms: int = int32("1+", ignorable=True)
    error_code: int = int16()
    groups: list[ListedGroup] = array(ListedGroup)
