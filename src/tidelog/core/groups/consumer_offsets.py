"""Who may commit and fetch the offsets of a KIP-848 group: members, by their epochs.

A classic member's epoch is its generation, and it gets the code that it knows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tidelog.core.groups.consumer_group import ConsumerGroup
from tidelog.core.groups.consumer_member import LEAVE_EPOCH
from tidelog.core.groups.consumer_records import PartitionKey
from tidelog.core.model.errors import ErrorCode

_FIRST_COMMIT_VERSION_WITH_EPOCH: Final = 9


def validate_consumer_commit(
    group: ConsumerGroup,
    member_id: str,
    instance_id: str | None,
    member_epoch: int,
    *,
    version: int,
    is_transactional: bool = False,
) -> Callable[[PartitionKey], ErrorCode]:
    """Whether this caller may commit a partition: in its epoch all, in an older one those that it
    has had since then."""
    is_anonymous = member_epoch == LEAVE_EPOCH and not member_id and instance_id is None
    if (member_epoch < 0 and not group.members) or (is_transactional and is_anonymous):
        return lambda _partition: ErrorCode.NONE
    member = group.members.get(member_id)
    if member is None:
        return lambda _partition: ErrorCode.UNKNOWN_MEMBER_ID
    is_classic = member.classic is not None
    stale = ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
    if not is_transactional and not is_classic and version < _FIRST_COMMIT_VERSION_WITH_EPOCH:
        return lambda _partition: ErrorCode.UNSUPPORTED_VERSION
    if member_epoch == member.member_epoch:
        return lambda _partition: ErrorCode.NONE
    if member_epoch > member.member_epoch:
        return lambda _partition: stale

    def by_partition(partition: PartitionKey) -> ErrorCode:
        since = member.partition_epoch(partition)
        is_its_own = since is not None and member_epoch >= since
        return ErrorCode.NONE if is_its_own else stale

    return by_partition


def validate_consumer_fetch(
    group: ConsumerGroup, member_id: str | None, member_epoch: int
) -> ErrorCode:
    """Whoever claims to be a member has to be one, in its present epoch."""
    if member_id is None and member_epoch < 0:
        return ErrorCode.NONE
    member = group.members.get(member_id or "")
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if member_epoch == member.member_epoch:
        return ErrorCode.NONE
    is_classic = member.classic is not None
    return ErrorCode.ILLEGAL_GENERATION if is_classic else ErrorCode.STALE_MEMBER_EPOCH
