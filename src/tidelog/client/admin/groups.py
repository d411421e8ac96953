"""Questions about groups: list, describe and delete them, and their committed offsets.

All are answered by the group's coordinator, except the list, which every broker has a part of.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidelog.client.admin.question import (
    AdminOutcome,
    GroupCoordinatorOf,
    Question,
    RetryLater,
    TheBroker,
)
from tidelog.client.group.consumer_protocol import (
    CONSUMER_PROTOCOL_TYPE,
    read_assignment,
    read_subscription,
)
from tidelog.client.group.coordinator_channel import COORDINATOR_ERRORS
from tidelog.client.group.offset_requests import (
    OFFSET_COMMIT_VERSIONS,
    OFFSET_FETCH_VERSIONS,
    FetchedOffsets,
    OffsetAndMetadata,
    commit_errors,
    commit_request,
    fetch_request,
    fetched_offsets,
)
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.codec import MalformedMessage
from tidelog.core.wire.messages.api_08_offset_commit import OffsetCommitResponse
from tidelog.core.wire.messages.api_09_offset_fetch import OffsetFetchResponse
from tidelog.core.wire.messages.api_15_describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from tidelog.core.wire.messages.api_16_list_groups import ListGroupsRequest, ListGroupsResponse
from tidelog.core.wire.messages.api_42_delete_groups import (
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from tidelog.core.wire.messages.api_47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
    OffsetDeleteResponse,
)
from tidelog.core.wire.schema import Message

_STATES_FROM = 4
_TYPES_FROM = 5


class GroupListing(NamedTuple):
    """A group as a list shows it; what an old broker does not tell is None."""

    group_id: str
    protocol_type: str
    state: str | None
    group_type: str | None


class GroupMemberDescription(NamedTuple):
    """A member of a classic group. Topics and partitions only of consumers, and if readable."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    host: str
    topics: tuple[str, ...]
    partitions: tuple[TopicPartition, ...]


class GroupDescription(NamedTuple):
    """A classic group, or why it cannot be described."""

    error: ErrorCode
    message: str | None
    group_id: str
    state: str
    protocol_type: str
    assignor: str
    members: tuple[GroupMemberDescription, ...]


class OffsetDeletion(NamedTuple):
    """Whether the group was touched at all, and how each partition went."""

    error: ErrorCode
    partitions: dict[TopicPartition, ErrorCode]


def list_groups(
    *, broker_id: int, states: Sequence[str] = (), types: Sequence[str] = ()
) -> Question[list[GroupListing]]:
    """Those that this broker coordinates, in one of these states and of one of these types."""
    request = ListGroupsRequest(states_filter=list(states), types_filter=list(types))

    def read(answer: Message) -> list[GroupListing] | RetryLater:
        assert isinstance(answer, ListGroupsResponse)
        error = ErrorCode.from_wire(answer.error_code)
        if error != ErrorCode.NONE:
            return RetryLater(error)
        return [
            GroupListing(
                each.group_id,
                each.protocol_type,
                each.group_state or None,
                each.group_type.lower() or None,
            )
            for each in answer.groups
        ]

    version_min = _TYPES_FROM if types else _STATES_FROM if states else None
    return Question(
        request=request, read=read, target=TheBroker(broker_id), version_min=version_min
    )


def describe_group(group_id: str) -> Question[GroupDescription]:
    """Of a classic group. The coordinator says so if it is of another type, or if it is none."""

    def read(answer: Message) -> GroupDescription | RetryLater:
        assert isinstance(answer, DescribeGroupsResponse)
        group = answer.groups[0]
        error = ErrorCode.from_wire(group.error_code)
        return RetryLater(error) if error in COORDINATOR_ERRORS else _described(group, error)

    request = DescribeGroupsRequest(groups=[group_id])
    return Question(request=request, read=read, target=GroupCoordinatorOf(group_id))


def committed_offsets(
    group_id: str, partitions: Iterable[TopicPartition] | None = None, *, is_stable: bool = False
) -> Question[FetchedOffsets]:
    """Of these partitions, or of all that have one. `is_stable` waits for open transactions."""
    request = fetch_request({group_id: partitions}, is_stable=is_stable)

    def read(answer: Message) -> FetchedOffsets | RetryLater:
        assert isinstance(answer, OffsetFetchResponse)
        found = fetched_offsets(answer)[group_id]
        unstable = ErrorCode.UNSTABLE_OFFSET_COMMIT
        if unstable in found.refused.values():
            return RetryLater(unstable)
        return RetryLater(found.error) if found.error in COORDINATOR_ERRORS else found

    return Question(
        request=request,
        read=read,
        target=GroupCoordinatorOf(group_id),
        version_min=OFFSET_FETCH_VERSIONS[0],
        version_max=OFFSET_FETCH_VERSIONS[-1],
    )


def commit_group_offsets(
    group_id: str, offsets: Mapping[TopicPartition, OffsetAndMetadata]
) -> Question[dict[TopicPartition, ErrorCode]]:
    """As an administrator: refused with UNKNOWN_MEMBER_ID while the group has members."""
    request = commit_request(group_id, offsets)

    def read(answer: Message) -> dict[TopicPartition, ErrorCode] | RetryLater:
        assert isinstance(answer, OffsetCommitResponse)
        errors = commit_errors(answer)
        for error in errors.values():
            if error in COORDINATOR_ERRORS:
                return RetryLater(error)
        return errors

    return Question(
        request=request,
        read=read,
        target=GroupCoordinatorOf(group_id),
        version_min=OFFSET_COMMIT_VERSIONS[0],
        version_max=OFFSET_COMMIT_VERSIONS[-1],
    )


def delete_group(group_id: str) -> Question[AdminOutcome]:
    """With its offsets; NON_EMPTY_GROUP while it has members."""

    def read(answer: Message) -> AdminOutcome | RetryLater:
        assert isinstance(answer, DeleteGroupsResponse)
        error = ErrorCode.from_wire(answer.results[0].error_code)
        return RetryLater(error) if error in COORDINATOR_ERRORS else AdminOutcome(error)

    request = DeleteGroupsRequest(groups_names=[group_id])
    return Question(request=request, read=read, target=GroupCoordinatorOf(group_id))


def delete_group_offsets(
    group_id: str, partitions: Iterable[TopicPartition]
) -> Question[OffsetDeletion]:
    """Of topics that no member subscribes to; GROUP_SUBSCRIBED_TO_TOPIC for the others."""
    topics: dict[str, OffsetDeleteRequestTopic] = {}
    for name in partitions:
        topic = topics.setdefault(name.topic, OffsetDeleteRequestTopic(name=name.topic))
        topic.partitions.append(OffsetDeleteRequestPartition(partition_index=name.index))
    request = OffsetDeleteRequest(group_id=group_id, topics=list(topics.values()))

    def read(answer: Message) -> OffsetDeletion | RetryLater:
        assert isinstance(answer, OffsetDeleteResponse)
        error = ErrorCode.from_wire(answer.error_code)
        if error in COORDINATOR_ERRORS:
            return RetryLater(error)
        results = {
            TopicPartition(topic.name, each.partition_index): ErrorCode.from_wire(each.error_code)
            for topic in answer.topics
            for each in topic.partitions
        }
        return OffsetDeletion(error, results)

    return Question(request=request, read=read, target=GroupCoordinatorOf(group_id))


def _described(group: DescribedGroup, error: ErrorCode) -> GroupDescription:
    is_consumer = group.protocol_type == CONSUMER_PROTOCOL_TYPE
    return GroupDescription(
        error,
        group.error_message,
        group.group_id,
        group.group_state,
        group.protocol_type,
        group.protocol_data,
        tuple(_member(each, is_consumer=is_consumer) for each in group.members),
    )


def _member(member: DescribedGroupMember, *, is_consumer: bool) -> GroupMemberDescription:
    topics: tuple[str, ...] = ()
    partitions: tuple[TopicPartition, ...] = ()
    if is_consumer:
        try:
            # A group that rebalances shows neither.
            topics = read_subscription(member.member_metadata) if member.member_metadata else ()
            partitions = tuple(sorted(read_assignment(member.member_assignment)))
        except MalformedMessage:
            pass
    return GroupMemberDescription(
        member.member_id,
        member.group_instance_id,
        member.client_id,
        member.client_host.removeprefix("/"),
        topics,
        partitions,
    )
