"""The rules of a follower: where it cuts its log, where it begins anew, how long it backs off.

Divergence is found by leader epochs, never by the high watermark: a follower may know less of what
is committed than it has (KIP-101). A new leader cuts nothing, its followers adapt to it.
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple, Protocol

from tidelog.core.model.errors import ErrorCode

BACK_OFF_FIRST_MS = 20
"""The metadata reaches brokers at slightly different times: a first refusal is soon outdated."""


class Reaction(Enum):
    """What a follower does about an error that its leader answers."""

    AWAIT_METADATA = "await metadata"
    FIND_RANGE = "find range"
    BACK_OFF = "back off"


_REACTIONS: dict[int, Reaction] = {
    # The leader knows a later leader epoch than we do: soon we shall know it too.
    ErrorCode.FENCED_LEADER_EPOCH: Reaction.AWAIT_METADATA,
    ErrorCode.OFFSET_OUT_OF_RANGE: Reaction.FIND_RANGE,
}


def reaction_to(error: int) -> Reaction:
    """Whatever is not named passes: a leader that has not heard of its leadership, a bad disk."""
    return _REACTIONS.get(error, Reaction.BACK_OFF)


class EpochEnd(NamedTuple):
    """A leader epoch, and where its records end in a log."""

    leader_epoch: int
    end_offset: int


class EpochKeeper(Protocol):
    """The part of a log that finds divergence."""

    @property
    def log_end_offset(self) -> int: ...

    def leader_epoch_end(self, leader_epoch: int) -> tuple[int, int] | None: ...


def truncation_end(log: EpochKeeper, *, diverging: EpochEnd) -> int:
    """Where to cut when the leader says how far it shares our last leader epoch.

    | our log                                   | cut at                                       |
    |-------------------------------------------|----------------------------------------------|
    | has records of the epoch that was named   | the earlier of both ends of that epoch       |
    | does not know it, but knows older ones    | the end of the newest older one; then ask on |
    | knows nothing as old                      | the leader's end of it                       |

    The second line is KIP-279: two leaders in quick succession, each with records that the other
    never saw. After the cut our last leader epoch is an older one, and the next fetch asks again.
    """
    log_end_offset = log.log_end_offset
    own = log.leader_epoch_end(diverging.leader_epoch)
    if own is None:
        return min(diverging.end_offset, log_end_offset)
    own_leader_epoch, own_end_offset = own
    if own_leader_epoch != diverging.leader_epoch:
        return min(own_end_offset, log_end_offset)
    return min(own_end_offset, diverging.end_offset, log_end_offset)


class NewStart(NamedTuple):
    """How a follower whose offset is not in its leader's log goes on."""

    end_offset: int
    starts_anew: bool
    """Forget everything and begin at `end_offset`; otherwise cut to it, if it is not the end."""


def new_start(*, log_end_offset: int, leader_start_offset: int, leader_end_offset: int) -> NewStart:
    """An end behind the leader's is cut (unclean election); one before its start begins anew."""
    if leader_end_offset < log_end_offset:
        return NewStart(leader_end_offset, starts_anew=False)
    if leader_start_offset > log_end_offset:
        return NewStart(leader_start_offset, starts_anew=True)
    return NewStart(log_end_offset, starts_anew=False)


def back_off_ms(failures: int, *, at_most_ms: int) -> int:
    """20 ms, then twice as long each time, up to what is configured."""
    assert failures > 0, "nothing failed"
    return min(at_most_ms, BACK_OFF_FIRST_MS << min(failures - 1, 30))
