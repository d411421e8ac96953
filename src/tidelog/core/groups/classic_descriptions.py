"""Classic groups as DescribeGroups and ListGroups show them."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.core.groups.classic_group import ClassicGroup, ClassicState
from tidelog.core.groups.classic_groups import ClassicGroups
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_15_describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
)
from tidelog.core.wire.messages.api_16_list_groups import ListedGroup

CLASSIC_TYPE = "classic"
_FIRST_VERSION_WITH_NOT_FOUND = 6


def describe_group(groups: ClassicGroups, group_id: str, *, version: int) -> DescribedGroup:
    """One group. What does not exist is dead, and to clients that know it also an error."""
    group = groups.get(group_id)
    if group is not None:
        return _described(group)
    missing = DescribedGroup(group_id=group_id, group_state=ClassicState.DEAD.value)
    if version >= _FIRST_VERSION_WITH_NOT_FOUND:
        missing.error_code = ErrorCode.GROUP_ID_NOT_FOUND
        missing.error_message = f"Group {group_id} not found."
    return missing


def list_groups(
    groups: ClassicGroups, *, states: Sequence[str], types: Sequence[str]
) -> list[ListedGroup]:
    """The groups in one of these states and of one of these types, in whatever case they are
    written; a list without an entry asks for all, an unknown entry matches nothing."""
    if types and CLASSIC_TYPE not in {name.lower() for name in types}:
        return []
    wanted = {name.strip().lower() for name in states}
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type or "",
            group_state=group.state.value,
            group_type=CLASSIC_TYPE,
        )
        for group in groups
        if not wanted or group.state.value.lower() in wanted
    ]


def _described(group: ClassicGroup) -> DescribedGroup:
    """Metadata and protocol are shown of a stable group only: before, they may still change."""
    protocol = group.protocol if group.state is ClassicState.STABLE else None
    return DescribedGroup(
        group_id=group.group_id,
        group_state=group.state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=protocol or "",
        members=[
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if protocol is None else member.metadata(protocol),
                member_assignment=member.assignment,
            )
            for member in group.members.values()
        ],
    )
