"""Fetch (api key 1), versions 4 to 18: reads of clients and followers, whole or by session.

Only nodes of the cluster fetch as replicas: others get TOPIC_AUTHORIZATION_FAILED for it, and for
the metadata log CLUSTER_AUTHORIZATION_FAILED. Answers at once when there is enough to read, when
something is wrong or when the client does not want to wait; otherwise the request is parked on its
session (core/node/fetch/fetch_answers.py).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import METADATA_TOPIC_ID
from tidelog.core.model.topic_name import METADATA_TOPIC
from tidelog.core.node.connections.request import Request
from tidelog.core.node.fetch.fetch_answers import (
    ParkedFetch,
    answer,
    assemble,
)
from tidelog.core.node.fetch.fetch_refusals import answer_error, refuse_stranger, refuse_whole
from tidelog.core.wire.fetch_fast import decode_fetch

if TYPE_CHECKING:
    from tidelog.core.node.node import Node

API_KEY = 1
VERSIONS = range(4, 19)
ISOLATION_LEVELS = (0, 1)
METADATA_NAMES = (METADATA_TOPIC_ID, METADATA_TOPIC)
"""The log that has its own rules (node/metadata_fetch_server.py)."""


def handle(node: Node, request: Request, now_ms: int) -> None:
    assert request.body is not None
    call = decode_fetch(request.body, request.version)
    is_of_metadata = bool(call.topics) and call.topics[0][0] in METADATA_NAMES
    if not request.is_from_member and (is_of_metadata or call.replica_id >= 0):
        refuse_stranger(request, call, is_of_metadata=is_of_metadata)
        return
    if is_of_metadata:
        node.quorum.fetch_server.handle(request, now_ms)
        return
    if call.isolation_level not in ISOLATION_LEVELS:
        refuse_whole(request, call, ErrorCode.UNKNOWN_SERVER_ERROR)
        return
    session = node.fetch_sessions.context(call, request.version, now_ms)
    if isinstance(session, ErrorCode):
        answer_error(request, session)
        return
    if session.parked is not None:
        session.parked.supersede(now_ms)
    answers, is_enough = assemble(node, session, call, now_ms)
    is_new_follower = session.is_follower and session.sends_all
    if is_enough or call.wait_ms_max <= 0 or is_new_follower:
        # A follower learns the id of its session at once: then it may ask for more partitions.
        answer(node, request, session, answers, now_ms)
        return
    session.parked = ParkedFetch(node, request, session, call)
    request.parked = session.parked
    node.timeouts.add(session.parked, timeout_ms=call.wait_ms_max, now_ms=now_ms)
