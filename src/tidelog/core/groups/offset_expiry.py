"""When committed offsets expire: Kafka's rules, which begin with whether the group is in use."""

from __future__ import annotations

from collections.abc import Callable

from tidelog.core.groups.classic_group import ClassicGroup, ClassicState
from tidelog.core.groups.consumer_group import ConsumerGroup
from tidelog.core.groups.offset_records import CommittedOffset

Rule = Callable[[str, CommittedOffset], bool]


def expiry_rule(group: ClassicGroup, *, wall_ms: int, retention_ms: int) -> Rule | None:
    """Whether an offset of a topic has expired; None: this group keeps all of them.

    The retention of an empty group's offsets begins when it became empty; that of a simple group's,
    and of topics that a stable group no longer reads, with the commit. While a group rebalances
    nothing expires.
    """
    since: Callable[[CommittedOffset], int] = _commit_wall_ms
    if group.protocol_type is not None:
        if group.state is ClassicState.EMPTY:
            empty_since_ms = group.state_timestamp_ms
            if empty_since_ms is not None:
                since = _always(empty_since_ms)
        elif not (
            group.is_of_consumers
            and group.subscribed_topics is not None
            and group.state is ClassicState.STABLE
        ):
            return None

    return _rule(group.is_subscribed_to, since, wall_ms=wall_ms, retention_ms=retention_ms)


def consumer_expiry_rule(group: ConsumerGroup, *, wall_ms: int, retention_ms: int) -> Rule:
    """KIP-848 groups: offsets of topics that no member reads expire, counted from the commit."""
    return _rule(
        group.is_subscribed_to, _commit_wall_ms, wall_ms=wall_ms, retention_ms=retention_ms
    )


def _rule(
    is_subscribed_to: Callable[[str], bool],
    since: Callable[[CommittedOffset], int],
    *,
    wall_ms: int,
    retention_ms: int,
) -> Rule:
    def is_expired(topic: str, committed: CommittedOffset) -> bool:
        if is_subscribed_to(topic):
            return False
        if committed.expire_wall_ms is not None:
            return wall_ms >= committed.expire_wall_ms
        return wall_ms - since(committed) >= retention_ms

    return is_expired


def _commit_wall_ms(committed: CommittedOffset) -> int:
    return committed.commit_wall_ms


def _always(wall_ms: int) -> Callable[[CommittedOffset], int]:
    return lambda _committed: wall_ms
