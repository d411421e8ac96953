"""Offsets that a transaction commits: decided like a plain commit, counted at its marker."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.coordinator.outcome import Outcome, ReplyTo
from tidelog.core.coordinator.record import CoordinatorRecord
from tidelog.core.groups.consumer_offsets import validate_consumer_commit
from tidelog.core.groups.consumer_records import PartitionKey
from tidelog.core.groups.group_shard import GroupShard
from tidelog.core.groups.offset_operations import any_partition, refuse_metadata
from tidelog.core.groups.offset_records import CommittedOffset, OffsetKey, offset_record
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ZERO_TOPIC_ID, ProducerIdAndEpoch, TopicId
from tidelog.core.wire.messages.api_28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from tidelog.core.wire.sentinels import NO_LEADER_EPOCH


def commit_transactional_offsets(
    shard: GroupShard,
    call: TxnOffsetCommitRequest,
    *,
    version: int,
    reply_to: ReplyTo,
    now_ms: int,
) -> Outcome:
    """TxnOffsetCommit: all offsets of a caller who may commit, or none of them."""
    refuse_partition: Callable[[PartitionKey], ErrorCode] = any_partition
    group = shard.consumer.get(call.group_id)
    member = (call.member_id, call.group_instance_id, call.generation_id)
    if group is not None:
        refuse_partition = validate_consumer_commit(
            group, *member, version=version, is_transactional=True
        )
    else:
        error = shard.classic.validate_offset_commit(
            call.group_id, *member, now_ms, version=version, is_transactional=True
        )
        if error is not ErrorCode.NONE:
            return Outcome(replies=[(reply_to, refused_offsets(call, error))])
    wall_ms = shard.wall_ms(now_ms)
    records: list[CoordinatorRecord] = []
    topics = []
    for topic in call.topics:
        topic_id = shard.topics.topic_id(topic.name) or TopicId(ZERO_TOPIC_ID)
        answers = []
        for partition in topic.partitions:
            index = partition.partition_index
            error = refuse_metadata(
                partition.committed_metadata, shard.settings.metadata_characters_max
            )
            if error is ErrorCode.NONE:
                refusal = refuse_partition((topic_id, index))
                if refusal is not ErrorCode.NONE:
                    if refusal is ErrorCode.STALE_MEMBER_EPOCH:  # transactions do not know it
                        refusal = ErrorCode.ILLEGAL_GENERATION
                    return Outcome(replies=[(reply_to, refused_offsets(call, refusal))])
                key = OffsetKey(call.group_id, topic.name, index)
                records.append(offset_record(key, _committed(partition, wall_ms)))
            answers.append(
                TxnOffsetCommitResponsePartition(partition_index=index, error_code=error)
            )
        topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=answers))
    return Outcome(
        records,
        [(reply_to, TxnOffsetCommitResponse(topics=topics))],
        producer=ProducerIdAndEpoch(call.producer_id, call.producer_epoch),
    )


def refused_offsets(call: TxnOffsetCommitRequest, error: ErrorCode) -> TxnOffsetCommitResponse:
    """The same refusal for every partition."""
    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    TxnOffsetCommitResponsePartition(
                        partition_index=each.partition_index, error_code=error
                    )
                    for each in topic.partitions
                ],
            )
            for topic in call.topics
        ]
    )


def _committed(partition: TxnOffsetCommitRequestPartition, wall_ms: int) -> CommittedOffset:
    leader_epoch = partition.committed_leader_epoch
    return CommittedOffset(
        offset=partition.committed_offset,
        leader_epoch=None if leader_epoch == NO_LEADER_EPOCH else leader_epoch,
        metadata=partition.committed_metadata or "",
        commit_wall_ms=wall_ms,
        expire_wall_ms=None,
        topic_id=ZERO_TOPIC_ID,
    )
