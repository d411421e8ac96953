"""TxnOffsetCommit (api key 28): offsets of a group that count when their transaction commits.

Version 3 names the member of the group, 5 adds the group to the transaction by itself.
"""

from __future__ import annotations

from tidelog.core.wire.schema import Message, Struct, array, int16, int32, int64, string


class TxnOffsetCommitRequestPartition(Struct):
    """One offset and what is written beside it."""

    partition_index: int = int32()
    committed_offset: int = int64()
    committed_leader_epoch: int = int32("2+", default=-1, ignorable=True)
    committed_metadata: str | None = string(nullable="0+")


class TxnOffsetCommitRequestTopic(Struct):
    """The offsets of one topic."""

    name: str = string()
    partitions: list[TxnOffsetCommitRequestPartition] = array(TxnOffsetCommitRequestPartition)


class TxnOffsetCommitRequest(Message, api_key=28, versions="0-5", flexible_from=3):
    """Commit these offsets with the transaction."""

    transactional_id: str = string()
    group_id: str = string()
    producer_id: int = int64()
    producer_epoch: int = int16()
    generation_id: int = int32("3+", default=-1)
    member_id: str = string("3+")
    group_instance_id: str | None = string("3+", nullable="3+", default=None)
    topics: list[TxnOffsetCommitRequestTopic] = array(TxnOffsetCommitRequestTopic)


class TxnOffsetCommitResponsePartition(Struct):
    """Whether one offset was taken."""

    partition_index: int = int32()
    error_code: int = int16()


class TxnOffsetCommitResponseTopic(Struct):
    """The outcome for one topic."""

    name: str = string()
    partitions: list[TxnOffsetCommitResponsePartition] = array(TxnOffsetCommitResponsePartition)


class TxnOffsetCommitResponse(Message, api_key=28, versions="0-5", flexible_from=3):
    """Whether the offsets were taken."""

    throttle_time_ms: int = int32()
    topics: list[TxnOffsetCommitResponseTopic] = array(TxnOffsetCommitResponseTopic)
