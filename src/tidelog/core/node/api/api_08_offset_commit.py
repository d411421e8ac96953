"""OffsetCommit (api key 8), versions 2 to 10.

Topics and partitions that do not exist are refused here; what is left goes to the group's
coordinator, and is answered when the offsets are committed themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.group_shard import GroupShard
from tidelog.core.groups.offset_operations import commit_offsets, refused_commit
from tidelog.core.metadata.cluster import TopicState
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicId
from tidelog.core.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 8
VERSIONS = range(2, 11)
WAITS_FOR_METADATA = True

_FIRST_VERSION_BY_ID = 10


def handle(node: Node, request: Request, now_ms: int) -> None:
    call = request.decode(OffsetCommitRequest)
    version = request.version
    known, refused = _sort_out(node.image, call, by_id=version >= _FIRST_VERSION_BY_ID)
    if not known.topics:
        request.answer(OffsetCommitResponse(topics=refused))
        return

    def commit(shard: GroupShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        outcome = commit_offsets(shard, known, version=version, reply_to=reply_to, now_ms=now_ms)
        for _, answer in outcome.replies:
            assert isinstance(answer, OffsetCommitResponse)
            answer.topics = _merged(refused, answer.topics)
        return outcome

    def refuse(error: ErrorCode) -> OffsetCommitResponse:
        if error is ErrorCode.MESSAGE_TOO_LARGE:
            error = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        return OffsetCommitResponse(topics=_merged(refused, refused_commit(known, error).topics))

    node.group_coordinator.submit(request, call.group_id, commit, refuse=refuse, now_ms=now_ms)


def _sort_out(
    image: ClusterImage, call: OffsetCommitRequest, *, by_id: bool
) -> tuple[OffsetCommitRequest, list[OffsetCommitResponseTopic]]:
    """What exists, with names and ids, and the answers for what does not."""
    known: list[OffsetCommitRequestTopic] = []
    refused: list[OffsetCommitResponseTopic] = []
    for topic in call.topics:
        state = _find(image, topic, by_id=by_id)
        if state is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(_refused(topic, topic.partitions, error))
            continue
        if by_id:
            topic.name = state.name
        topic.topic_id = state.topic_id
        partitions_count = len(state.partitions)
        there = [p for p in topic.partitions if 0 <= p.partition_index < partitions_count]
        missing = [p for p in topic.partitions if not 0 <= p.partition_index < partitions_count]
        if missing:
            refused.append(_refused(topic, missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if there:
            topic.partitions = there
            known.append(topic)
    call.topics = known
    return call, refused


def _find(
    image: ClusterImage, topic: OffsetCommitRequestTopic, *, by_id: bool
) -> TopicState | None:
    if by_id:
        return image.topics_by_id.get(TopicId(bytes(topic.topic_id)))
    return image.topics.get(topic.name)


def _refused(
    topic: OffsetCommitRequestTopic,
    partitions: list[OffsetCommitRequestPartition],
    error: ErrorCode,
) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            OffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
            for each in partitions
        ],
    )


def _merged(
    refused: list[OffsetCommitResponseTopic], decided: list[OffsetCommitResponseTopic]
) -> list[OffsetCommitResponseTopic]:
    """Refused ones first; a topic that has both kinds of partitions appears once."""
    merged = list(refused)
    by_name = {topic.name: topic for topic in refused if topic.name}
    for topic in decided:
        if topic.name in by_name:
            by_name[topic.name].partitions += topic.partitions
        else:
            merged.append(topic)
    return merged
