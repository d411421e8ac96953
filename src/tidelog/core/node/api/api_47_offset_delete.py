"""OffsetDelete (api key 47), version 0.

Forgets offsets of topics that a group does not read at the moment. Topics and partitions that do
not exist are refused here, the others by the group's coordinator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.group_shard import GroupShard
from tidelog.core.groups.offset_operations import delete_offsets
from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 47
VERSIONS = range(1)
WAITS_FOR_METADATA = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(OffsetDeleteRequest)
    if not call.group_id:
        request.answer(_refuse(ErrorCode.INVALID_GROUP_ID))
        return
    refused = _take_out_unknown(node, call)

    def delete(shard: GroupShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        outcome = delete_offsets(shard, call, reply_to=reply_to)
        for _, answer in outcome.replies:
            assert isinstance(answer, OffsetDeleteResponse)
            if answer.error_code == ErrorCode.NONE:
                answer.topics = _merged(refused, answer.topics)
        return outcome

    node.group_coordinator.submit(request, call.group_id, delete, refuse=_refuse, now_ms=now_ms)


def _refuse(error: ErrorCode) -> OffsetDeleteResponse:
    return OffsetDeleteResponse(error_code=error)


def _take_out_unknown(node: Node, call: OffsetDeleteRequest) -> list[OffsetDeleteResponseTopic]:
    """Leaves in the call what exists; the answers for the rest."""
    refused = []
    known = []
    for topic in call.topics:
        state = node.image.topics.get(topic.name)
        count = 0 if state is None else len(state.partitions)
        there = [each for each in topic.partitions if 0 <= each.partition_index < count]
        missing = [each for each in topic.partitions if not 0 <= each.partition_index < count]
        if missing:
            refused.append(_missing(topic.name, missing))
        if there:
            topic.partitions = there
            known.append(topic)
    call.topics = known
    return refused


def _missing(
    name: str, partitions: list[OffsetDeleteRequestPartition]
) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=each.partition_index,
                error_code=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            )
            for each in partitions
        ],
    )


def _merged(
    refused: list[OffsetDeleteResponseTopic], decided: list[OffsetDeleteResponseTopic]
) -> list[OffsetDeleteResponseTopic]:
    """Refused ones first; a topic that has both kinds of partitions appears once."""
    by_name = {topic.name: topic for topic in refused}
    for topic in decided:
        if topic.name in by_name:
            by_name[topic.name].partitions += topic.partitions
        else:
            by_name[topic.name] = topic
    return list(by_name.values())
