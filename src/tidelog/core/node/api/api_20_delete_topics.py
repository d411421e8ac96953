"""DeleteTopics (api key 20), versions 1 to 6.

Forgets topics, by name and from version 6 on by id. Answered when the metadata is durable; the
files go later. With `delete.topic.enable=false` nothing is deleted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.controller.topics import DeletedTopic, decide_delete
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ZERO_TOPIC_ID, TopicId
from tidelog.core.wire.messages.api_20_delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 20
VERSIONS = range(1, 7)
FORWARDED = True

_FIRST_VERSION_WITH_DELETION_DISABLED = 3


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(DeleteTopicsRequest)
    topics = _topics(call)
    error = refuse(
        call,
        version=request.version,
        is_enabled=node.settings.boolean("delete.topic.enable"),
    )
    if error != ErrorCode.NONE:
        results = [_result(topic, error) for topic in topics]
        request.answer(DeleteTopicsResponse(responses=results))
        return
    decision = decide_delete(node.metadata.decided_image, topics)
    response = DeleteTopicsResponse(
        responses=[_result(deleted, ErrorCode.NONE) for deleted in decision.outcomes]
    )
    node.metadata.propose(decision.records, lambda: request.answer(response), now_ms=now_ms)


def refuse(call: DeleteTopicsRequest, *, version: int, is_enabled: bool) -> ErrorCode:
    """Why nothing at all is deleted."""
    if not is_enabled and version < _FIRST_VERSION_WITH_DELETION_DISABLED:
        return ErrorCode.INVALID_REQUEST
    if not is_enabled:
        return ErrorCode.TOPIC_DELETION_DISABLED
    if call.timeout_ms <= 0:
        return ErrorCode.REQUEST_TIMED_OUT
    return ErrorCode.NONE


def _topics(call: DeleteTopicsRequest) -> list[DeletedTopic]:
    topics = [DeletedTopic(name=name) for name in call.topic_names]
    for topic in call.topics:
        topic_id = None if topic.topic_id == ZERO_TOPIC_ID else TopicId(topic.topic_id)
        topics.append(DeletedTopic(name=topic.name, topic_id=topic_id))
    return topics


def _result(deleted: DeletedTopic, error: ErrorCode) -> DeletableTopicResult:
    result = DeletableTopicResult(
        name=deleted.name, topic_id=deleted.topic_id or ZERO_TOPIC_ID, error_code=error
    )
    if deleted.refusal is not None:
        result.error_code = deleted.refusal.error
        result.error_message = deleted.refusal.message
    return result
