"""CreatePartitions (api key 37), versions 0 to 3.

Adds partitions to topics, placed by the controller or by the asker. Answered when the metadata is
durable; with `validate_only` only the checks are made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.controller.partitions import Grown, Growth, decide_growth
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_37_create_partitions import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreatePartitionsTopic,
    CreatePartitionsTopicResult,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 37
VERSIONS = range(4)
FORWARDED = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(CreatePartitionsRequest)
    if call.timeout_ms <= 0:
        request.answer(_timed_out(call))
        return
    decision = decide_growth(
        node.metadata.decided_image,
        [_growth(topic) for topic in call.topics],
        random=node.random,
    )
    response = CreatePartitionsResponse(results=[_result(grown) for grown in decision.outcomes])
    records = [] if call.validate_only else decision.records
    node.metadata.propose(records, lambda: request.answer(response), now_ms=now_ms)


def _growth(topic: CreatePartitionsTopic) -> Growth:
    assignments = None
    if topic.assignments is not None:
        assignments = tuple(tuple(assignment.broker_ids) for assignment in topic.assignments)
    return Growth(topic=topic.name, partitions_count=topic.count, assignments=assignments)


def _result(grown: Grown) -> CreatePartitionsTopicResult:
    if grown.refusal is None:
        return CreatePartitionsTopicResult(name=grown.topic)
    return CreatePartitionsTopicResult(
        name=grown.topic,
        error_code=grown.refusal.error,
        error_message=grown.refusal.message,
    )


def _timed_out(call: CreatePartitionsRequest) -> CreatePartitionsResponse:
    return CreatePartitionsResponse(
        results=[
            CreatePartitionsTopicResult(name=topic.name, error_code=ErrorCode.REQUEST_TIMED_OUT)
            for topic in call.topics
        ]
    )
