"""One member of a classic group, and the calls that members wait on."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Final, NamedTuple

from tidelog.core.coordinator.outcome import ReplyTo
from tidelog.core.groups.group_limits import member_cost

NO_ASSIGNMENT: Final = b""


class GroupProtocol(NamedTuple):
    """A protocol that a member supports, and what it says about itself in it."""

    name: str
    metadata: bytes


def protocols_cost(protocols: tuple[GroupProtocol, ...]) -> int:
    """What a member with these costs."""
    return member_cost(part for protocol in protocols for part in protocol)


class ParkedJoin(NamedTuple):
    """A JoinGroup that waits for the rebalance. Old versions have no null in the answer."""

    reply_to: ReplyTo
    version: int


@dataclass(slots=True, kw_only=True)
class ClassicMember:
    """A member; whether it waits for an answer, its group knows."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rebalance_timeout_ms: int
    session_timeout_ms: int
    protocols: tuple[GroupProtocol, ...]
    """In the order of preference."""
    assignment: bytes = NO_ASSIGNMENT
    is_new: bool = False
    """It has not been in any generation, and may time out while it waits for its first one."""

    @property
    def is_static(self) -> bool:
        return self.group_instance_id is not None

    @property
    def cost(self) -> int:
        """In bytes of memory, about."""
        return protocols_cost(self.protocols)

    def metadata(self, protocol_name: str) -> bytes:
        return next(it.metadata for it in self.protocols if it.name == protocol_name)

    def vote(self, candidates: Container[str]) -> str:
        """The protocol that this member likes best among those that all members support."""
        return next(it.name for it in self.protocols if it.name in candidates)
