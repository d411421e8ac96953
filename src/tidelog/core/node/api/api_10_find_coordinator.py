"""FindCoordinator (api key 10), versions 0 to 6.

This broker coordinates neither groups nor transactions yet. It says so with the error that clients
retry in silence: any other one librdkafka hands to consumers that only assign partitions. And it is
served nonetheless, because librdkafka takes its presence for the sign of a broker that can read
LZ4, and without it silently sends such batches uncompressed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_10_find_coordinator import (
    Coordinator,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)
from tidelog.core.wire.sentinels import NO_NODE, NO_PORT

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 10
VERSIONS = range(7)
WAITS_FOR_METADATA = True

_FIRST_VERSION_WITH_MANY_KEYS = 4
_FIRST_VERSION_WITH_SHARE_GROUPS = 6
_REASON = "this broker does not coordinate groups or transactions yet"


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(FindCoordinatorRequest)
    code, reason = ErrorCode.COORDINATOR_NOT_AVAILABLE, _REASON
    if call.key_type not in _kinds(request.version):
        code, reason = ErrorCode.INVALID_REQUEST, f"there is no kind of key {call.key_type}"
    if request.version < _FIRST_VERSION_WITH_MANY_KEYS:
        request.answer(
            FindCoordinatorResponse(
                error_code=code, error_message=reason, node_id=NO_NODE, port=NO_PORT
            )
        )
        return
    request.answer(
        FindCoordinatorResponse(
            coordinators=[
                Coordinator(
                    key=key,
                    node_id=NO_NODE,
                    port=NO_PORT,
                    error_code=code,
                    error_message=reason,
                )
                for key in call.coordinator_keys
            ]
        )
    )


def _kinds(version: int) -> tuple[int, ...]:
    """Groups, transactional ids, and from version 6 on groups of share consumers."""
    return (0, 1, 2) if version >= _FIRST_VERSION_WITH_SHARE_GROUPS else (0, 1)
