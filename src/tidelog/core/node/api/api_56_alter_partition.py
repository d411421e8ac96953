"""AlterPartition (api key 56), versions 2 and 3; between brokers and controller only.

A leader asks for another in-sync set of its partitions. Each partition is answered for itself: its
state as it will be, or why not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tidelog.core.controller.alter_partition import IsrChange, IsrChanged, Member
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicId
from tidelog.core.node.controller.committed_answers import answer_when_committed
from tidelog.core.wire.messages.api_56_alter_partition import (
    AlterPartitionRequest,
    AlterPartitionRequestPartition,
    AlterPartitionResponse,
    AlterPartitionResponsePartition,
    AlterPartitionResponseTopic,
)
from tidelog.core.wire.sentinels import NO_NODE, UNKNOWN_BROKER_EPOCH

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 56
VERSIONS = range(2, 4)
BETWEEN_NODES = True

_FIRST_VERSION_WITH_BROKER_EPOCHS = 3
_RECOVERY_STATES = (0, 1)


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(AlterPartitionRequest)
    not_controller = AlterPartitionResponse(error_code=ErrorCode.NOT_CONTROLLER)
    if not node.metadata.is_active:
        request.answer(not_controller)
        return
    if any(each.leader_recovery_state not in _RECOVERY_STATES for each in _partitions(call)):
        # Kafka fails such a request as a whole; so brokers see the same.
        request.answer(AlterPartitionResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR))
        return
    changes = [
        _isr_change(
            PartitionKey(TopicId(topic.topic_id), each.partition_index), each, request.version
        )
        for topic in call.topics
        for each in topic.partitions
    ]
    outcomes = node.active_controller.change_isrs(
        broker_id=call.broker_id, broker_epoch=call.broker_epoch, changes=changes, now_ms=now_ms
    )
    if isinstance(outcomes, ErrorCode):
        answer = AlterPartitionResponse(error_code=outcomes)
    else:
        answer = _answer(outcomes)
    answer_when_committed(node.metadata, request, answer, otherwise=not_controller, now_ms=now_ms)


def _partitions(call: AlterPartitionRequest) -> Iterator[AlterPartitionRequestPartition]:
    for topic in call.topics:
        yield from topic.partitions


def _isr_change(
    key: PartitionKey, partition: AlterPartitionRequestPartition, version: int
) -> IsrChange:
    if version < _FIRST_VERSION_WITH_BROKER_EPOCHS:
        members = [Member(broker_id, None) for broker_id in partition.new_isr]
    else:
        members = [
            Member(
                each.broker_id,
                None if each.broker_epoch == UNKNOWN_BROKER_EPOCH else each.broker_epoch,
            )
            for each in partition.new_isr_with_epochs
        ]
    return IsrChange(
        key=key,
        leader_epoch=partition.leader_epoch,
        partition_epoch=partition.partition_epoch,
        members=tuple(members),
        leader_is_recovering=partition.leader_recovery_state != 0,
    )


def _answer(outcomes: Sequence[IsrChanged]) -> AlterPartitionResponse:
    by_topic: dict[TopicId, AlterPartitionResponseTopic] = {}
    for outcome in outcomes:
        topic_id = outcome.key.topic_id
        topic = by_topic.setdefault(topic_id, AlterPartitionResponseTopic(topic_id=topic_id))
        topic.partitions.append(_partition(outcome))
    return AlterPartitionResponse(topics=list(by_topic.values()))


def _partition(outcome: IsrChanged) -> AlterPartitionResponsePartition:
    state = outcome.state
    if state is None:
        return AlterPartitionResponsePartition(
            partition_index=outcome.key.partition, error_code=outcome.error
        )
    return AlterPartitionResponsePartition(
        partition_index=outcome.key.partition,
        leader_id=NO_NODE if state.leader is None else state.leader,
        leader_epoch=state.leader_epoch,
        isr=list(state.isr),
        leader_recovery_state=int(state.leader_is_recovering),
        partition_epoch=state.partition_epoch,
    )
