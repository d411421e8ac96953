"""ListPartitionReassignments (api key 46), version 0.

Replicas are not moved between brokers yet, so there is never anything to list. Tools ask for it
before they describe a topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.controller.committed_answers import answer_when_committed
from tidelog.core.wire.messages.api_46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 46
VERSIONS = range(1)
FORWARDED = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    request.decode(ListPartitionReassignmentsRequest)
    refused = ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NOT_CONTROLLER, error_message=None
    )
    if not node.metadata.is_active:
        request.answer(refused)
        return
    answer = ListPartitionReassignmentsResponse(error_message=None)
    answer_when_committed(node.metadata, request, answer, otherwise=refused, now_ms=now_ms)
