"""BrokerHeartbeat (api key 63), versions 0 to 2; between brokers and controller only.

A broker reports that it lives, how far it has read the metadata and which state it wants; it is
answered whether it is fenced, and whether it may stop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.controller.heartbeat import Standing
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.controller.broker_heartbeats import Heartbeat
from tidelog.core.node.controller.committed_answers import answer_when_committed
from tidelog.core.wire.messages.api_63_broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 63
VERSIONS = range(3)
BETWEEN_NODES = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(BrokerHeartbeatRequest)
    not_controller = BrokerHeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER)
    if not node.metadata.is_active:
        request.answer(not_controller)
        return
    beat = Heartbeat(
        broker_id=call.broker_id,
        broker_epoch=call.broker_epoch,
        metadata_end_offset=call.current_metadata_offset + 1,
        wants_fence=call.want_fence,
        wants_stop=call.want_shut_down,
        lost_directories=tuple(call.offline_log_dirs),
        connection=request.connection_id,
    )
    pulse = node.active_controller.heartbeat(beat, now_ms)
    if isinstance(pulse, ErrorCode):
        answer = BrokerHeartbeatResponse(error_code=pulse)
    else:
        answer = BrokerHeartbeatResponse(
            is_caught_up=pulse.is_caught_up,
            is_fenced=pulse.standing.is_fenced,
            should_shut_down=pulse.standing is Standing.GONE,
        )
    answer_when_committed(node.metadata, request, answer, otherwise=not_controller, now_ms=now_ms)
