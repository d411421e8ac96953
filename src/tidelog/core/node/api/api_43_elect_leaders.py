"""ElectLeaders (api key 43), versions 0 to 2.

An administrator requests elections: of the preferred replica (type 0), or of any replica that is
alive where a partition has no leader (type 1), which may cost records. Without a list it is for
all partitions, and those that need no election are left out of the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidelog.core.controller.elect_leaders import ElectionRequest, everywhere
from tidelog.core.controller.election import Election
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.controller.committed_answers import answer_when_committed
from tidelog.core.wire.messages.api_43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 43
VERSIONS = range(3)
FORWARDED = True

_ELECTIONS = {0: Election.PREFERRED, 1: Election.UNCLEAN}
_FIRST_VERSION_WITH_TYPE = 1


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(ElectLeadersRequest)
    if not node.metadata.is_active:
        request.answer(_refused(call, ErrorCode.NOT_CONTROLLER, request.version))
        return
    election = _ELECTIONS.get(call.election_type)
    if election is None:
        answer = _refused(call, ErrorCode.INVALID_REQUEST, request.version)
    else:
        partitions = _partitions(node, call)
        outcomes = node.active_controller.elect(partitions, election, now_ms)
        answer = _answer(call, outcomes)
    answer_when_committed(
        node.metadata,
        request,
        answer,
        otherwise=_refused(call, ErrorCode.NOT_CONTROLLER, request.version),
        now_ms=now_ms,
    )


def _partitions(node: Node, call: ElectLeadersRequest) -> list[ElectionRequest]:
    if call.topic_partitions is None:
        return everywhere(node.metadata.decided_image)
    return [
        ElectionRequest(topic=topic.topic, partition=index)
        for topic in call.topic_partitions
        for index in topic.partitions
    ]


def _answer(call: ElectLeadersRequest, outcomes: Iterable[ElectionRequest]) -> ElectLeadersResponse:
    by_topic = {
        topic.topic: ReplicaElectionResult(topic=topic.topic)
        for topic in call.topic_partitions or ()
    }
    for outcome in outcomes:
        result = by_topic.setdefault(outcome.topic, ReplicaElectionResult(topic=outcome.topic))
        error = ErrorCode.NONE if outcome.refusal is None else outcome.refusal.error
        if call.topic_partitions is None and error == ErrorCode.ELECTION_NOT_NEEDED:
            continue
        result.partition_result.append(
            PartitionResult(
                partition_id=outcome.partition,
                error_code=error,
                error_message=None if outcome.refusal is None else outcome.refusal.message,
            )
        )
    return ElectLeadersResponse(replica_election_results=list(by_topic.values()))


def _refused(call: ElectLeadersRequest, error: ErrorCode, version: int) -> ElectLeadersResponse:
    """Version 0 has no place for an error of the whole, so each partition gets it."""
    message = "this node is not the controller"
    if error == ErrorCode.INVALID_REQUEST:
        message = "there is no such kind of election"
    results = [
        ReplicaElectionResult(
            topic=topic.topic,
            partition_result=[
                PartitionResult(partition_id=index, error_code=error, error_message=message)
                for index in topic.partitions
            ],
        )
        for topic in call.topic_partitions or ()
    ]
    response = ElectLeadersResponse(replica_election_results=results)
    if version >= _FIRST_VERSION_WITH_TYPE:
        response.error_code = error
    return response
