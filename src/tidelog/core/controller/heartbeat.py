"""What a heartbeat changes: the next state of a broker, from what it is and what it asks for.

fenced    -> unfenced    when it wants to be in and has read its own registration
unfenced  -> fenced      when it wants to be out
unfenced  -> leaving     when it wants to stop and leads something
leaving   -> gone        when it leads nothing, and all others know that
fenced, unfenced -> gone when it wants to stop and leads nothing
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum


class Standing(Enum):
    """How a broker stands; GONE: it is fenced and may stop."""

    FENCED = "fenced"
    UNFENCED = "unfenced"
    LEAVING = "leaving"
    GONE = "gone"

    @property
    def is_fenced(self) -> bool:
        return self in (Standing.FENCED, Standing.GONE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Beat:
    """A heartbeat, and what is known when it comes."""

    standing: Standing
    wants_fence: bool
    wants_stop: bool
    is_caught_up: bool
    """Has the broker read its own registration?"""
    leads_any: bool
    is_known_to_leave: bool
    """Has every active broker read that its leaderships moved?"""


def next_standing(beat: Beat) -> Standing:
    return _NEXT[beat.standing](beat)


def _from_fenced(beat: Beat) -> Standing:
    if beat.wants_stop:
        return Standing.GONE
    if not beat.wants_fence and beat.is_caught_up:
        return Standing.UNFENCED
    return Standing.FENCED


def _from_unfenced(beat: Beat) -> Standing:
    if beat.wants_stop:
        return Standing.LEAVING if beat.leads_any and not beat.wants_fence else Standing.GONE
    return Standing.FENCED if beat.wants_fence else Standing.UNFENCED


def _from_leaving(beat: Beat) -> Standing:
    is_done = not beat.leads_any and beat.is_known_to_leave
    return Standing.GONE if is_done else Standing.LEAVING


def _from_gone(beat: Beat) -> Standing:
    return Standing.GONE


_NEXT: dict[Standing, Callable[[Beat], Standing]] = {
    Standing.FENCED: _from_fenced,
    Standing.UNFENCED: _from_unfenced,
    Standing.LEAVING: _from_leaving,
    Standing.GONE: _from_gone,
}
assert set(_NEXT) == set(Standing)
