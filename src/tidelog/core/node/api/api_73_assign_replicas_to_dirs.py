"""AssignReplicasToDirs (api key 73), version 0; between brokers and controller only.

A broker with several log directories says which of them holds which of its replicas. Each replica
is answered for itself, in the order in which they were named.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.controller.directories import Placed
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicId
from tidelog.core.node.controller.committed_answers import answer_when_committed
from tidelog.core.wire.messages.api_73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryResult,
    PartitionResult,
    TopicResult,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 73
VERSIONS = range(1)
BETWEEN_NODES = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(AssignReplicasToDirsRequest)
    not_controller = AssignReplicasToDirsResponse(error_code=ErrorCode.NOT_CONTROLLER)
    if not node.metadata.is_active:
        request.answer(not_controller)
        return
    placed = [
        Placed(PartitionKey(TopicId(topic.topic_id), partition.partition_index), directory.id_)
        for directory in call.directories
        for topic in directory.topics
        for partition in topic.partitions
    ]
    errors = node.active_controller.take_down_directories(
        broker_id=call.broker_id, broker_epoch=call.broker_epoch, reported=placed, now_ms=now_ms
    )
    if isinstance(errors, ErrorCode):
        answer = AssignReplicasToDirsResponse(error_code=errors)
    else:
        answer = _answer(call, errors)
    answer_when_committed(node.metadata, request, answer, otherwise=not_controller, now_ms=now_ms)


def _answer(
    call: AssignReplicasToDirsRequest, errors: list[ErrorCode]
) -> AssignReplicasToDirsResponse:
    next_error = iter(errors)
    return AssignReplicasToDirsResponse(
        directories=[
            DirectoryResult(
                id_=directory.id_,
                topics=[
                    TopicResult(
                        topic_id=topic.topic_id,
                        partitions=[
                            PartitionResult(
                                partition_index=partition.partition_index,
                                error_code=next(next_error),
                            )
                            for partition in topic.partitions
                        ],
                    )
                    for topic in directory.topics
                ],
            )
            for directory in call.directories
        ]
    )
