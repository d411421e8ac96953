"""OffsetForLeaderEpoch (api key 23), versions 2 to 4.

Answers where the records of a leader epoch end in the leader's log, so that a follower or a
consumer finds out from where on its own records differ. Only the leader answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.replicas.partition_lookup import find_leader, leader_epoch_of
from tidelog.core.wire.messages.api_23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopicResult,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 23
VERSIONS = range(2, 5)
WAITS_FOR_METADATA = True


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(OffsetForLeaderEpochRequest)
    results: dict[str, OffsetForLeaderTopicResult] = {}
    for topic in call.topics:
        if topic.topic not in results:  # Kafka reads a topic that comes twice only once
            answers = [_answer(node, topic.topic, question) for question in topic.partitions]
            results[topic.topic] = OffsetForLeaderTopicResult(topic=topic.topic, partitions=answers)
    request.answer(OffsetForLeaderEpochResponse(topics=list(results.values())))


def _answer(node: Node, topic: str, question: OffsetForLeaderPartition) -> EpochEndOffset:
    index = question.partition
    claimed = leader_epoch_of(question.current_leader_epoch)
    partition = find_leader(node, topic, index, claimed_leader_epoch=claimed)
    if isinstance(partition, ErrorCode):
        return EpochEndOffset(partition=index, error_code=partition)
    end = partition.leader_epoch_end(question.leader_epoch)
    if end is None:
        return EpochEndOffset(partition=index)
    return EpochEndOffset(partition=index, leader_epoch=end[0], end_offset=end[1])
