"""FindCoordinator (api key 10), versions 0 to 6.

A group's coordinator is the leader of its partition of `__consumer_offsets`, a transactional id's
that of `__transaction_state`. The first one to ask has that topic made, and waits for it: Kafka
answers COORDINATOR_NOT_AVAILABLE meanwhile, after which clients sleep for longer than it takes. Nor
is a client sent back to a coordinator that was lost a moment ago (recent_departures.py): it hears
of the next one.

Groups of share consumers are not coordinated. That is said with the error that clients retry in
silence: any other one librdkafka hands to its user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_name import OFFSETS_TOPIC, TRANSACTIONS_TOPIC
from tidelog.core.node.metadata import cluster_view
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

GROUP_KEY, TRANSACTION_KEY, SHARE_KEY = 0, 1, 2

_FIRST_VERSION_WITH_MANY_KEYS = 4
_FIRST_VERSION_WITH_SHARE_GROUPS = 6
_NO_SHARE_GROUPS = "this broker does not coordinate groups of share consumers"
_NO_COORDINATOR = "the coordinator is not available"
_FOUND = "NONE"
"""What Kafka writes where there is no error to explain."""


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(FindCoordinatorRequest)
    keys = call.coordinator_keys if request.version >= _FIRST_VERSION_WITH_MANY_KEYS else [call.key]
    if call.key_type not in (GROUP_KEY, TRANSACTION_KEY):
        error, reason = ErrorCode.COORDINATOR_NOT_AVAILABLE, _NO_SHARE_GROUPS
        if call.key_type not in _kinds(request.version):
            error, reason = ErrorCode.INVALID_REQUEST, f"there is no kind of key {call.key_type}"
        _answer(request, [_refused(key, error, reason) for key in keys])
        return
    topic = OFFSETS_TOPIC if call.key_type == GROUP_KEY else TRANSACTIONS_TOPIC
    _search(node, request, topic, keys, now_ms)


def _search(node: Node, request: Request, topic: str, keys: list[str], now_ms: int) -> None:
    """Now, or when it is decided who follows the brokers that were lost a moment ago."""
    missed = node.recent_departures.missed(now_ms)
    if missed and any(_find(node, topic, key).node_id in missed for key in keys):
        node.recent_departures.wait(
            request, lambda now_ms: _search(node, request, topic, keys, now_ms), now_ms
        )
        return

    def look(now_ms: int, is_last: bool) -> bool:
        if request.connection is not None and request.connection.is_failed:
            return True
        found = [_find(node, topic, key) for key in keys]
        if not is_last and any(each.error_code != ErrorCode.NONE for each in found):
            return False
        _answer(request, found)
        return True

    if not look(now_ms, False):
        node.internal_topics.wait(topic, look, now_ms)


def _find(node: Node, topic: str, key: str) -> Coordinator:
    """The leader of the key's partition, if that broker is alive."""
    is_group = topic == OFFSETS_TOPIC
    coordinator = node.group_coordinator if is_group else node.transaction_coordinator
    state = node.image.partition(topic, coordinator.partition_of(key))
    leader_id = NO_NODE if state is None or state.leader is None else state.leader
    if not cluster_view.is_online(node.image, leader_id):
        return _refused(key, ErrorCode.COORDINATOR_NOT_AVAILABLE, _NO_COORDINATOR)
    endpoint = cluster_view.address(node.image.brokers[leader_id])
    return Coordinator(
        key=key,
        node_id=leader_id,
        host=endpoint.host,
        port=endpoint.port,
        error_message=_FOUND,
    )


def _refused(key: str, error: ErrorCode, reason: str) -> Coordinator:
    return Coordinator(
        key=key, node_id=NO_NODE, port=NO_PORT, error_code=error, error_message=reason
    )


def _answer(request: Request, found: list[Coordinator]) -> None:
    if request.version >= _FIRST_VERSION_WITH_MANY_KEYS:
        for each in found:
            if each.error_code == ErrorCode.NONE:
                each.error_message = ""
        request.answer(FindCoordinatorResponse(coordinators=found))
        return
    (only,) = found
    request.answer(
        FindCoordinatorResponse(
            error_code=only.error_code,
            error_message=only.error_message,
            node_id=only.node_id,
            host=only.host,
            port=only.port,
        )
    )


def _kinds(version: int) -> tuple[int, ...]:
    """Groups, transactional ids, and from version 6 on groups of share consumers."""
    if version >= _FIRST_VERSION_WITH_SHARE_GROUPS:
        return (GROUP_KEY, TRANSACTION_KEY, SHARE_KEY)
    return (GROUP_KEY, TRANSACTION_KEY)
