"""BrokerRegistration (api key 62), versions 0 to 4; between brokers and controller only.

A broker process introduces itself and gets the broker epoch under which it lives from now on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.controller.admission import Newcomer
from tidelog.core.controller.decision import Refusal
from tidelog.core.metadata.cluster import FeatureRange, ListenerEndpoint
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.controller.committed_answers import answer_when_committed
from tidelog.core.wire.messages.api_62_broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)
from tidelog.core.wire.sentinels import UNKNOWN_BROKER_EPOCH

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 62
VERSIONS = range(5)
BETWEEN_NODES = True

_FIRST_VERSION_WITH_PROOF = 3


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(BrokerRegistrationRequest)
    not_controller = BrokerRegistrationResponse(error_code=ErrorCode.NOT_CONTROLLER)
    if not node.metadata.is_active:
        request.answer(not_controller)
        return
    outcome = _register(node, request, call, now_ms)
    if isinstance(outcome, Refusal):
        answer = BrokerRegistrationResponse(error_code=outcome.error)
    else:
        answer = BrokerRegistrationResponse(broker_epoch=outcome)
    answer_when_committed(node.metadata, request, answer, otherwise=not_controller, now_ms=now_ms)


def _register(
    node: Node, request: Request, call: BrokerRegistrationRequest, now_ms: int
) -> int | Refusal:
    if call.is_migrating_zk_broker:
        return Refusal(ErrorCode.BROKER_ID_NOT_REGISTERED, "there is no ZooKeeper here")
    is_own = request.connection is None and call.broker_id == node.settings.node_id
    newcomer = _newcomer(call, request.version)
    return node.active_controller.register(newcomer, is_own=is_own, now_ms=now_ms)


def _newcomer(call: BrokerRegistrationRequest, version: int) -> Newcomer:
    previous: int | None = call.previous_broker_epoch
    if version < _FIRST_VERSION_WITH_PROOF or previous == UNKNOWN_BROKER_EPOCH:
        previous = None
    return Newcomer(
        broker_id=call.broker_id,
        cluster_id=call.cluster_id,
        incarnation_id=call.incarnation_id,
        endpoints=tuple(
            ListenerEndpoint(each.name, each.host, each.port, each.security_protocol)
            for each in call.listeners
        ),
        rack=call.rack,
        log_directories=tuple(call.log_dirs),
        features=tuple(
            FeatureRange(each.name, each.min_supported_version, each.max_supported_version)
            for each in call.features
        ),
        previous_broker_epoch=previous,
    )
