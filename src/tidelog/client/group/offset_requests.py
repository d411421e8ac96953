"""Committed offsets on the wire: requests by topic names, and what the answers say.

Versions stay below 10, where topics have ids instead of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from tidelog.core.wire.messages.api_09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from tidelog.core.wire.sentinels import NO_LEADER_EPOCH

OFFSET_COMMIT_VERSIONS: Final = range(7, 10)
"""From static members on, up to topic ids."""
EPOCH_COMMIT_VERSIONS: Final = range(9, 10)
"""From member epochs on, up to topic ids."""
EPOCH_FETCH_VERSIONS: Final = range(9, 10)
OFFSET_FETCH_VERSIONS: Final = range(8, 10)
"""From batched groups on, up to topic ids."""
NO_GENERATION: Final = -1
"""Of whoever commits without being a member."""


class OffsetAndMetadata(NamedTuple):
    """The next offset that a group will read; `leader_epoch` is of the record before it."""

    offset: int
    leader_epoch: int | None = None
    metadata: str = ""


class ConsumerGroupMetadata(NamedTuple):
    """Whose offsets a transaction commits; without a member: a group that has none."""

    group_id: str
    generation_id: int = NO_GENERATION
    """Or the member epoch, in a KIP-848 group."""
    member_id: str = ""
    group_instance_id: str | None = None


class FetchedOffsets(NamedTuple):
    """One group's offsets; partitions without one are missing."""

    error: ErrorCode
    """Of the group as a whole."""
    offsets: dict[TopicPartition, OffsetAndMetadata]
    refused: dict[TopicPartition, ErrorCode]


def commit_request(
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    *,
    generation_id: int = NO_GENERATION,
    member_id: str = "",
    group_instance_id: str | None = None,
) -> OffsetCommitRequest:
    """As a member, or as an administrator of a group without members."""
    topics: dict[str, OffsetCommitRequestTopic] = {}
    for name, each in sorted(offsets.items()):
        topic = topics.setdefault(name.topic, OffsetCommitRequestTopic(name=name.topic))
        topic.partitions.append(
            OffsetCommitRequestPartition(
                partition_index=name.index,
                committed_offset=each.offset,
                committed_leader_epoch=(
                    NO_LEADER_EPOCH if each.leader_epoch is None else each.leader_epoch
                ),
                committed_metadata=each.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=group_id,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        group_instance_id=group_instance_id,
        topics=list(topics.values()),
    )


def commit_errors(answer: OffsetCommitResponse) -> dict[TopicPartition, ErrorCode]:
    """By partition, NONE included."""
    return {
        TopicPartition(topic.name, each.partition_index): ErrorCode.from_wire(each.error_code)
        for topic in answer.topics
        for each in topic.partitions
    }


def fetch_request(
    wanted: Mapping[str, Iterable[TopicPartition] | None],
    *,
    is_stable: bool,
    member_id: str | None = None,
    member_epoch: int = NO_GENERATION,
) -> OffsetFetchRequest:
    """The offsets of these groups: of these partitions, or of all that have one.

    A member of a KIP-848 group says who it is, so that it gets none if it is fenced.
    """
    groups = []
    for group_id, partitions in wanted.items():
        topics: dict[str, OffsetFetchRequestTopics] = {}
        for name in sorted(partitions or ()):
            topic = topics.setdefault(name.topic, OffsetFetchRequestTopics(name=name.topic))
            topic.partition_indexes.append(name.index)
        groups.append(
            OffsetFetchRequestGroup(
                group_id=group_id,
                member_id=member_id,
                member_epoch=member_epoch,
                topics=None if partitions is None else list(topics.values()),
            )
        )
    return OffsetFetchRequest(groups=groups, require_stable=is_stable)


def fetched_offsets(answer: OffsetFetchResponse) -> dict[str, FetchedOffsets]:
    """By group."""
    fetched: dict[str, FetchedOffsets] = {}
    for group in answer.groups:
        error = ErrorCode.from_wire(group.error_code)
        result = fetched[group.group_id] = FetchedOffsets(error, {}, {})
        for topic in group.topics:
            for each in topic.partitions:
                name = TopicPartition(topic.name, each.partition_index)
                refusal = ErrorCode.from_wire(each.error_code)
                if refusal != ErrorCode.NONE:
                    result.refused[name] = refusal
                elif each.committed_offset >= 0:
                    leader_epoch = each.committed_leader_epoch
                    result.offsets[name] = OffsetAndMetadata(
                        each.committed_offset,
                        leader_epoch if leader_epoch >= 0 else None,
                        each.metadata or "",
                    )
    return fetched
