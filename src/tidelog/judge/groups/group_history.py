"""A history of consumer groups: what members, committers and administrators were answered.

Operations stand in the order of their completion, as in judge/history.py, and outcomes are the same
three. Every commit carries a token, its metadata, that no other commit has: an offset that somebody
fetches names the commit it came from.

`from_deposed` marks answers of a broker that was not the newest leader of the group's partition
all the time: until it learns so, it may answer from a past that others have left. That past was
committed, so what it shows still counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidelog.judge.history import CallOutcome, FinalLog

NO_GENERATION = -1
"""Of whoever commits without being a member."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupJoined:
    """A JoinGroup was answered with a generation."""

    at_us: int
    invoked_us: int
    group: str
    member: str
    instance: str | None
    generation: int
    from_deposed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSynced:
    """A SyncGroup was answered with an assignment: from now on the member owns it."""

    at_us: int
    invoked_us: int
    group: str
    member: str
    instance: str | None
    generation: int
    partitions: tuple[str, ...]
    from_deposed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberHeartbeat:
    """A heartbeat of a member of a KIP-848 group, answered or not."""

    at_us: int
    invoked_us: int
    group: str
    member: str
    sent_epoch: int
    """0 joins, negative ones leave."""
    owned: tuple[str, ...] | None = None
    """What the member said that it has; None: what it last said."""
    member_epoch: int | None = None
    """What it was answered; None: it was refused, or not answered."""
    assigned: tuple[str, ...] | None = None
    """All that it should have; None: what it was last answered."""
    error: str | None = None
    from_deposed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetCommitted:
    """A commit of one partition's offset, and what its caller knows about it."""

    at_us: int
    invoked_us: int
    group: str
    partition: str
    token: str
    offset: int
    outcome: CallOutcome
    member: str = ""
    instance: str | None = None
    generation: int = NO_GENERATION
    """Of a member of a KIP-848 group: its epoch."""
    error: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetFetched:
    """A group's offset of one partition as somebody was given it; no token: there is none."""

    at_us: int
    invoked_us: int
    group: str
    partition: str
    token: str | None
    offset: int
    reader: str = "?"
    from_deposed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OffsetsRemoved:
    """A deletion of one partition's offset, or of the whole group."""

    at_us: int
    invoked_us: int
    group: str
    partition: str | None
    outcome: CallOutcome


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAtRest:
    """A group some time after the last fault: its living members, and what each of them owns."""

    at_us: int
    group: str
    partitions: tuple[str, ...]
    members: tuple[str, ...]
    owned: tuple[tuple[str, str], ...]
    """Pairs of member and partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDelivered:
    """A member's program was given a record by its poll."""

    at_us: int
    group: str
    member: str
    """As in GroupSynced: who was assigned the partition."""
    partition: str
    offset: int
    payload: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestUnanswered:
    """No answer came in time over a connection that nothing was done to."""

    at_us: int
    invoked_us: int
    client: str
    request: str
    broker: int


GroupOperation = (
    GroupJoined
    | GroupSynced
    | MemberHeartbeat
    | OffsetCommitted
    | OffsetFetched
    | OffsetsRemoved
    | GroupAtRest
    | RequestUnanswered
    | RecordDelivered
    | FinalLog
)
GroupHistory = Sequence[GroupOperation]


class Deletions:
    """When groups may have been deleted: generations begin anew after that."""

    def __init__(self, history: GroupHistory) -> None:
        self._by_group: dict[str, list[OffsetsRemoved]] = {}
        for operation in history:
            if (
                isinstance(operation, OffsetsRemoved)
                and operation.partition is None
                and operation.outcome is not CallOutcome.REFUSED
            ):
                self._by_group.setdefault(operation.group, []).append(operation)

    def between(self, group: str, since_us: int, until_us: int) -> bool:
        """Whether the group may have been deleted in that time; an unknown deletion may be late."""
        return any(
            deletion.invoked_us < until_us
            and (deletion.outcome is CallOutcome.UNKNOWN or deletion.at_us > since_us)
            for deletion in self._by_group.get(group, ())
        )
