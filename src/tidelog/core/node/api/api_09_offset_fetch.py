"""OffsetFetch (api key 9), versions 1 to 10.

Which offsets groups have committed: for some partitions, or for all that a group has offsets for.
From version 8 on a request may name many groups, which may have different coordinators here; from
10 on topics have ids. A group that does not exist has no offsets, which is no error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.groups.group_shard import GroupShard
from tidelog.core.groups.offset_operations import fetch_offsets, unknown_offset
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ZERO_TOPIC_ID, TopicId
from tidelog.core.node.coordinators.topic_coordinator import CoordinatorCall
from tidelog.core.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)

if TYPE_CHECKING:
    from tidelog.core.node.connections.request import Request
    from tidelog.core.node.node import Node

API_KEY = 9
VERSIONS = range(1, 11)
WAITS_FOR_METADATA = True

_FIRST_VERSION_WITH_GROUP_ERROR = 2
_FIRST_VERSION_WITH_GROUPS = 8
_FIRST_VERSION_BY_ID = 10


def handle(node: Node, request: Request, now_ms: int) -> None:
    call, version = request.decode(OffsetFetchRequest), request.version
    groups = call.groups if version >= _FIRST_VERSION_WITH_GROUPS else [_single_group(call)]
    by_id = version >= _FIRST_VERSION_BY_ID
    unknown = [_take_out_unknown(node.image, group) if by_id else [] for group in groups]

    def combine(parts: list[OffsetFetchResponseGroup]) -> OffsetFetchResponse:
        for part, refused in zip(parts, unknown, strict=True):
            if by_id:
                part.topics = _with_ids(node.image, part.topics)
            if part.error_code == ErrorCode.NONE:
                part.topics += refused
        return _response(parts, version)

    node.group_coordinator.submit_calls(
        request,
        [_call(group, call.require_stable, version) for group in groups],
        combine=combine,
        now_ms=now_ms,
    )


def _single_group(call: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    """The form before version 8 as one group of many."""
    topics = None
    if call.topics is not None:
        topics = [
            OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes)
            for topic in call.topics
        ]
    return OffsetFetchRequestGroup(group_id=call.group_id, topics=topics)


def _call(
    group: OffsetFetchRequestGroup, require_stable: bool, version: int
) -> CoordinatorCall[GroupShard, OffsetFetchResponseGroup]:
    def fetch(shard: GroupShard, reply_to: ReplyTo, now_ms: int) -> Outcome:
        return fetch_offsets(shard, group, require_stable=require_stable, reply_to=reply_to)

    return CoordinatorCall(group.group_id, fetch, lambda error: _refused(group, error, version))


def _refused(
    group: OffsetFetchRequestGroup, error: ErrorCode, version: int
) -> OffsetFetchResponseGroup:
    """Consumers before 3.9 do not know COORDINATOR_NOT_AVAILABLE here, so they look again."""
    if error is ErrorCode.COORDINATOR_NOT_AVAILABLE:
        error = ErrorCode.NOT_COORDINATOR
    if version >= _FIRST_VERSION_WITH_GROUP_ERROR:
        return OffsetFetchResponseGroup(group_id=group.group_id, error_code=error)
    topics = [_unknown_offsets(topic, error) for topic in group.topics or ()]
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=topics)


def _unknown_offsets(
    topic: OffsetFetchRequestTopics, error: ErrorCode
) -> OffsetFetchResponseTopics:
    return OffsetFetchResponseTopics(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[unknown_offset(index, error) for index in topic.partition_indexes],
    )


def _take_out_unknown(
    image: ClusterImage, group: OffsetFetchRequestGroup
) -> list[OffsetFetchResponseTopics]:
    """Give topics their names; the answers for ids that no topic has."""
    unknown = []
    known = []
    for topic in group.topics or ():
        state = image.topics_by_id.get(TopicId(bytes(topic.topic_id)))
        if state is None:
            unknown.append(_unknown_offsets(topic, ErrorCode.UNKNOWN_TOPIC_ID))
        else:
            topic.name = state.name
            known.append(topic)
    if group.topics is not None:
        group.topics = known
    return unknown


def _with_ids(
    image: ClusterImage, topics: list[OffsetFetchResponseTopics]
) -> list[OffsetFetchResponseTopics]:
    """Where all topics were asked for: those that still have an id can be named."""
    named = []
    for topic in topics:
        state = image.topics.get(topic.name)
        if topic.topic_id == ZERO_TOPIC_ID and state is not None:
            topic.topic_id = state.topic_id
        if topic.topic_id != ZERO_TOPIC_ID:
            named.append(topic)
    return named


def _response(groups: list[OffsetFetchResponseGroup], version: int) -> OffsetFetchResponse:
    if version >= _FIRST_VERSION_WITH_GROUPS:
        return OffsetFetchResponse(groups=groups)
    (group,) = groups
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponseTopic(
                name=topic.name, partitions=[_single(each) for each in topic.partitions]
            )
            for topic in group.topics
        ],
    )


def _single(offset: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=offset.partition_index,
        committed_offset=offset.committed_offset,
        committed_leader_epoch=offset.committed_leader_epoch,
        metadata=offset.metadata,
        error_code=offset.error_code,
    )
