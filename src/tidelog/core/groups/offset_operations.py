"""Committing, fetching and deleting offsets: decisions of a shard, with the answers of the APIs.

Topics have their names here whatever the request had: whoever calls looks up ids first.
"""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.consumer_offsets import (
    validate_consumer_commit,
    validate_consumer_fetch,
)
from tidelog.core.groups.consumer_records import PartitionKey
from tidelog.core.groups.group_shard import GroupShard
from tidelog.core.groups.offset_records import (
    CommittedOffset,
    OffsetKey,
    offset_record,
    offset_tombstone,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ZERO_TOPIC_ID, TopicId
from tidelog.core.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tidelog.core.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from tidelog.core.wire.messages.api_47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from tidelog.core.wire.sentinels import NO_LEADER_EPOCH, UNKNOWN_OFFSET

BROKER_RETENTION = -1
"""OffsetCommit before version 5: the client wants no retention of its own."""


def commit_offsets(
    shard: GroupShard,
    call: OffsetCommitRequest,
    *,
    version: int,
    reply_to: ReplyTo,
    now_ms: int,
) -> Outcome:
    """OffsetCommit: all offsets of a caller who may commit, one record each."""
    refuse_partition: Callable[[PartitionKey], ErrorCode] = any_partition
    group = shard.consumer.get(call.group_id)
    member = (call.member_id, call.group_instance_id, call.generation_id_or_member_epoch)
    if group is not None:
        refuse_partition = validate_consumer_commit(group, *member, version=version)
    else:
        error = shard.classic.validate_offset_commit(
            call.group_id, *member, now_ms, version=version
        )
        if error is not ErrorCode.NONE:
            return Outcome(replies=[(reply_to, refused_commit(call, error))])
    wall_ms = shard.wall_ms(now_ms)
    retention_ms = call.retention_time_ms
    expire_wall_ms = None if retention_ms == BROKER_RETENTION else wall_ms + retention_ms
    records: list[CoordinatorRecord] = []
    topics = []
    for topic in call.topics:
        answers = []
        for partition in topic.partitions:
            error = refuse_partition((TopicId(bytes(topic.topic_id)), partition.partition_index))
            if error is ErrorCode.NONE:
                error = refuse_metadata(
                    partition.committed_metadata, shard.settings.metadata_characters_max
                )
            answers.append(
                OffsetCommitResponsePartition(
                    partition_index=partition.partition_index, error_code=error
                )
            )
            if error is ErrorCode.NONE:
                key = OffsetKey(call.group_id, topic.name, partition.partition_index)
                committed = _committed(partition, topic.topic_id, wall_ms, expire_wall_ms)
                records.append(offset_record(key, committed))
        topics.append(
            OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=answers)
        )
    return Outcome(records, [(reply_to, OffsetCommitResponse(topics=topics))])


def any_partition(_partition: PartitionKey) -> ErrorCode:
    return ErrorCode.NONE


def refused_commit(call: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    """The same refusal for every partition."""
    return OffsetCommitResponse(
        topics=[
            OffsetCommitResponseTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partitions=[
                    OffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=error
                    )
                    for each in topic.partitions
                ],
            )
            for topic in call.topics
        ]
    )


def refuse_metadata(metadata: str | None, characters_max: int) -> ErrorCode:
    """What is written beside an offset has a limit."""
    if metadata is None or 2 * len(metadata) <= characters_max:
        return ErrorCode.NONE
    characters = len(metadata.encode("utf-16-le", "surrogatepass")) // 2
    return ErrorCode.OFFSET_METADATA_TOO_LARGE if characters > characters_max else ErrorCode.NONE


def _committed(
    partition: OffsetCommitRequestPartition,
    topic_id: bytes,
    wall_ms: int,
    expire_wall_ms: int | None,
) -> CommittedOffset:
    leader_epoch = partition.committed_leader_epoch
    return CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=None if leader_epoch == NO_LEADER_EPOCH else leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_wall_ms=wall_ms,
        expire_wall_ms=expire_wall_ms,
        topic_id=bytes(topic_id),
    )


def fetch_offsets(
    shard: GroupShard,
    wanted: OffsetFetchRequestGroup,
    *,
    require_stable: bool,
    reply_to: ReplyTo,
) -> Outcome:
    """OffsetFetch for one group: some partitions, or without topics all that it has."""
    group = shard.consumer.get(wanted.group_id)
    if group is not None:
        error = validate_consumer_fetch(group, wanted.member_id, wanted.member_epoch)
        if error is not ErrorCode.NONE:
            refused = OffsetFetchResponseGroup(group_id=wanted.group_id, error_code=error)
            return Outcome(replies=[(reply_to, refused)])
    if wanted.topics is None:
        topics = _all_topics(shard, wanted.group_id, require_stable)
    else:
        topics = [
            _fetched_topic(shard, wanted.group_id, topic, require_stable) for topic in wanted.topics
        ]
    answer = OffsetFetchResponseGroup(group_id=wanted.group_id, topics=topics)
    return Outcome(replies=[(reply_to, answer)])


def _all_topics(
    shard: GroupShard, group_id: str, require_stable: bool
) -> list[OffsetFetchResponseTopics]:
    return [
        OffsetFetchResponseTopics(
            name=topic,
            partitions=[
                _fetched(shard, OffsetKey(group_id, topic, index), committed, require_stable)
                for index, committed in partitions.items()
            ],
        )
        for topic, partitions in shard.offsets.of_group(group_id).items()
    ]


def _fetched_topic(
    shard: GroupShard, group_id: str, topic: OffsetFetchRequestTopics, require_stable: bool
) -> OffsetFetchResponseTopics:
    """An offset that was committed for an earlier topic of this name does not count."""
    partitions = []
    for index in topic.partition_indexes:
        key = OffsetKey(group_id, topic.name, index)
        committed = shard.offsets.get(key)
        if committed is not None and _is_of_another(committed.topic_id, bytes(topic.topic_id)):
            committed = None
        partitions.append(_fetched(shard, key, committed, require_stable))
    return OffsetFetchResponseTopics(
        name=topic.name, topic_id=topic.topic_id, partitions=partitions
    )


def _is_of_another(committed_for: bytes, wanted: bytes) -> bool:
    return ZERO_TOPIC_ID not in (committed_for, wanted) and committed_for != wanted


def _fetched(
    shard: GroupShard, key: OffsetKey, committed: CommittedOffset | None, require_stable: bool
) -> OffsetFetchResponsePartitions:
    if require_stable and shard.offsets.is_unstable(key):
        return unknown_offset(key.partition, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    if committed is None:
        return unknown_offset(key.partition, ErrorCode.NONE)
    leader_epoch = committed.leader_epoch
    return OffsetFetchResponsePartitions(
        partition_index=key.partition,
        committed_offset=committed.offset,
        committed_leader_epoch=NO_LEADER_EPOCH if leader_epoch is None else leader_epoch,
        metadata=committed.metadata,
    )


def unknown_offset(partition: int, error: ErrorCode) -> OffsetFetchResponsePartitions:
    """There is no offset, or none that may be said."""
    return OffsetFetchResponsePartitions(
        partition_index=partition,
        committed_offset=UNKNOWN_OFFSET,
        metadata="",
        error_code=error,
    )


def delete_offsets(shard: GroupShard, call: OffsetDeleteRequest, *, reply_to: ReplyTo) -> Outcome:
    """OffsetDelete: offsets of topics that the group does not read."""
    error = _refuse_deletion(shard, call.group_id)
    if error is not ErrorCode.NONE:
        return Outcome(replies=[(reply_to, OffsetDeleteResponse(error_code=error))])
    records: list[CoordinatorRecord] = []
    topics = []
    for topic in call.topics:
        error = _refuse_deletion(shard, call.group_id, topic.name)
        partitions = []
        for partition in topic.partitions:
            index = partition.partition_index
            partitions.append(
                OffsetDeleteResponsePartition(partition_index=index, error_code=error)
            )
            key = OffsetKey(call.group_id, topic.name, index)
            is_there = shard.offsets.get(key) is not None or shard.offsets.is_unstable(key)
            if error is ErrorCode.NONE and is_there:
                records.append(offset_tombstone(key))
        topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=partitions))
    return Outcome(records, [(reply_to, OffsetDeleteResponse(topics=topics))])


def _refuse_deletion(shard: GroupShard, group_id: str, topic: str | None = None) -> ErrorCode:
    """For the whole group, or with a topic for one of its topics."""
    group = shard.consumer.get(group_id)
    if group is None:
        return shard.classic.validate_offset_delete(group_id, topic)
    is_read = topic is not None and group.is_subscribed_to(topic)
    return ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if is_read else ErrorCode.NONE
