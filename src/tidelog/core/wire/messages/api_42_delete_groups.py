"""DeleteGroups (api key 42): forget empty groups and their offsets. Version 2 is flexible."""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int16, int32, string


class DeleteGroupsRequest(Message, api_key=42, versions="0-2", flexible_from=2):
    """Forget these."""

    groups_names: list[str] = array(string)


class DeletableGroupResult(Struct):
    """Whether one group was deleted."""

    group_id: str = string()
    error_code: int = int16()


class DeleteGroupsResponse(Message, api_key=42, versions="0-2", flexible_from=2):
    """What was deleted."""

    throttle_time_ms: int = int32()
    results: list[DeletableGroupResult] = array(DeletableGroupResult)
