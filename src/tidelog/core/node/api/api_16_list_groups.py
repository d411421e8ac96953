"""ListGroups (api key 16), versions 0 to 5: the groups that this broker coordinates.

Clients ask every broker. A partition that is still loading makes the whole answer an error: a list
with holes would look like groups that are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.classic_descriptions import list_groups
from tidelog.core.groups.consumer_descriptions import list_consumer_groups
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_16_list_groups import (
    ListedGroup,
    ListGroupsRequest,
    ListGroupsResponse,
)

if TYPE_CHECKING:
    from tidelog.core.groups.group_shard import GroupShard
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 16
VERSIONS = range(6)
WAITS_FOR_METADATA = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(ListGroupsRequest)

    def list_here(shard: GroupShard, reply_to: ReplyTo, _now_ms: int) -> Outcome:
        states, types = call.states_filter, call.types_filter
        groups = list_groups(shard.classic, states=states, types=types)
        groups += list_consumer_groups(shard.consumer, states=states, types=types)
        return Outcome(replies=[(reply_to, groups)])

    node.group_coordinator.submit_everywhere(
        request, list_here, refuse=lambda error: error, combine=combine, now_ms=now_ms
    )


def combine(parts: list[list[ListedGroup] | ErrorCode]) -> ListGroupsResponse:
    """A partition that moved away meanwhile is listed by its new coordinator."""
    response = ListGroupsResponse()
    for part in parts:
        if isinstance(part, list):
            response.groups += part
        elif part is not ErrorCode.NOT_COORDINATOR:
            return ListGroupsResponse(error_code=part)
    return response
