"""The values that go into the quorum's machine and come out of it, and the log as it sees it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from tidelog.core.model.errors import ErrorCode
from tidelog.core.quorum.roles import Role


class LogPosition(NamedTuple):
    """How far a log reaches: the greater one is at least as up to date, as Raft compares them."""

    quorum_epoch: int
    """Of its newest record; 0 for a log without any."""
    end_offset: int


class LogFacts(Protocol):
    """What the machine must know about the log. It never writes it."""

    @property
    def position(self) -> LogPosition:
        """The end of what was appended, durable or not."""

    @property
    def synced_end_offset(self) -> int:
        """Everything before it survives a power loss."""


class ElectionState(NamedTuple):
    """What must survive a restart, or a vote could be cast twice."""

    quorum_epoch: int = 0
    leader_id: int | None = None
    voted_for: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Timing:
    """The timeouts of a voter; the names are those of `controller.quorum.*`."""

    election_timeout_ms: int = 1_000
    fetch_timeout_ms: int = 2_000
    election_backoff_max_ms: int = 1_000
    stagger_ms: int = 15
    """How much later the next voter begins when several could begin an election at once."""

    @property
    def check_quorum_ms(self) -> int:
        """How long a leader goes on without fetches from a majority before it resigns."""
        return self.fetch_timeout_ms * 3 // 2

    @property
    def begin_again_ms(self) -> int:
        """How long a voter may be without a fetch before it gets BeginQuorumEpoch again."""
        return self.fetch_timeout_ms // 2


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteCall:
    """Please vote for me; or, with `is_pre_vote`: would you?"""

    candidate_id: int
    quorum_epoch: int
    position: LogPosition
    is_pre_vote: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteAnswer:
    error: ErrorCode
    quorum_epoch: int
    leader_id: int | None
    is_granted: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginEpoch:
    """I lead this epoch: fetch from me."""

    leader_id: int
    quorum_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EndEpoch:
    """I lead no longer; the preferred successors, best first."""

    leader_id: int
    quorum_epoch: int
    preferred: tuple[int, ...]


Call = VoteCall | BeginEpoch | EndEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleChanged:
    """This node is something else to the quorum now, or the same in another epoch."""

    node_id: int
    role: Role
    quorum_epoch: int
    leader_id: int | None
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteGranted:
    """This node's one vote of an epoch; it was durable before the candidate heard of it."""

    node_id: int
    quorum_epoch: int
    candidate_id: int


@dataclass(slots=True)
class Ready:
    """What one step asks of the shell, in the order in which it must happen."""

    store: ElectionState | None = None
    """1. Write and fsync; nothing below may be heard by anyone before."""
    changes: list[RoleChanged] = field(default_factory=list)
    """2. Act on these: a new leader appends its first records."""
    granted: VoteGranted | None = None
    reply: VoteAnswer | None = None
    """3. A promise: the answer to a vote call."""
    high_watermark: int | None = None
    """The new one, if it moved."""
