"""Why a member of a KIP-848 group is refused: Kafka's codes and sentences."""

from __future__ import annotations

from tidelog.core.groups.consumer_group import ConsumerGroup
from tidelog.core.groups.consumer_member import ConsumerMember
from tidelog.core.groups.group_settings import ConsumerGroupSettings
from tidelog.core.groups.regex_syntax import InvalidRegex
from tidelog.core.groups.topic_regex import TopicRegex
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.exceptions import TidelogError


class HeartbeatRefused(TidelogError):
    """With the code and the sentence that the member gets."""

    def __init__(self, error: ErrorCode, message: str | None) -> None:
        super().__init__(message or error.name)
        self.error = error
        self.message = message


def unknown_member(group_id: str, member_id: str) -> HeartbeatRefused:
    return HeartbeatRefused(
        ErrorCode.UNKNOWN_MEMBER_ID, f"Member {member_id} is not a member of group {group_id}."
    )


def known_static_member(
    member: ConsumerMember | None, member_id: str, instance_id: str
) -> ConsumerMember:
    """The member that has an instance id, if it is the caller."""
    if member is None:
        raise HeartbeatRefused(
            ErrorCode.UNKNOWN_MEMBER_ID, f"Instance id {instance_id} is unknown."
        )
    if member.member_id != member_id:
        raise HeartbeatRefused(
            ErrorCode.FENCED_INSTANCE_ID,
            f"Static member {member_id} with instance id {instance_id} was fenced by member "
            f"{member.member_id}.",
        )
    return member


def refuse_if_full(group: ConsumerGroup, member_id: str, settings: ConsumerGroupSettings) -> None:
    """Raise if there is no room for this one; members stay."""
    limit = settings.size_max
    if len(group.members) >= limit and member_id not in group.members:
        raise HeartbeatRefused(
            ErrorCode.GROUP_MAX_SIZE_REACHED,
            f"The consumer group has reached its maximum capacity of {limit} members.",
        )


def refuse_invalid_regex(regex: str) -> None:
    try:
        TopicRegex(regex)
    except InvalidRegex as why:
        raise HeartbeatRefused(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {why}.",
        ) from why
