"""AlterPartitionReassignments (api key 45), versions 0 and 1.

An administrator gives partitions other replicas, or cancels that (no list of replicas). The answer
says that a reassignment has begun, not that it is over: ListPartitionReassignments shows it until
then. Version 1 can forbid that the number of replicas changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidelog.core.controller.reassignment import ReassignmentRequest
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.controller.committed_answers import answer_when_committed
from tidelog.core.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 45
VERSIONS = range(2)
FORWARDED = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(AlterPartitionReassignmentsRequest)
    refused = AlterPartitionReassignmentsResponse(
        error_code=ErrorCode.NOT_CONTROLLER, error_message="this node is not the controller"
    )
    if not node.metadata.is_active:
        request.answer(refused)
        return
    outcomes = node.active_controller.reassign(
        _requests(call),
        may_change_factor=call.allow_replication_factor_change,
        now_ms=now_ms,
    )
    answer = _answer(call, outcomes)
    answer_when_committed(node.metadata, request, answer, otherwise=refused, now_ms=now_ms)


def _requests(call: AlterPartitionReassignmentsRequest) -> list[ReassignmentRequest]:
    return [
        ReassignmentRequest(
            topic=topic.name,
            partition=each.partition_index,
            replicas=None if each.replicas is None else tuple(each.replicas),
        )
        for topic in call.topics
        for each in topic.partitions
    ]


def _answer(
    call: AlterPartitionReassignmentsRequest, outcomes: Iterable[ReassignmentRequest]
) -> AlterPartitionReassignmentsResponse:
    """Outcomes come in the order of the requests."""
    answers = iter(outcomes)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=call.allow_replication_factor_change,
        # As in Kafka, which does not look at a request without topics.
        error_message=None if call.topics else "",
        responses=[
            ReassignableTopicResponse(
                name=topic.name, partitions=[_outcome(next(answers)) for _ in topic.partitions]
            )
            for topic in call.topics
        ],
    )


def _outcome(outcome: ReassignmentRequest) -> ReassignablePartitionResponse:
    refusal = outcome.refusal
    return ReassignablePartitionResponse(
        partition_index=outcome.partition,
        error_code=ErrorCode.NONE if refusal is None else refusal.error,
        error_message=None if refusal is None else refusal.message,
    )
