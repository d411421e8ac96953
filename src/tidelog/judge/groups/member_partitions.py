"""When members of a KIP-848 group hold a partition: from the answer that gives it to the release.

A member holds a partition from the answer to a heartbeat that assigns it until it sends a heartbeat
that does not name it any more, joins anew, or leaves. Its coordinator may remove it in between, and
then the member holds what somebody else may get; it learns that with its next request.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidelog.judge.groups.group_history import GroupHistory, MemberHeartbeat

FIRST_EPOCH = 1


@dataclass(slots=True)
class Hold:
    """One member and one partition, from its grant on."""

    member: str
    grant: MemberHeartbeat
    until_us: int | None = None
    """When the release was sent."""

    def covers(self, at_us: int) -> bool:
        return self.grant.at_us < at_us and (self.until_us is None or at_us < self.until_us)


class MemberPartitions:
    """The heartbeats of each group, and what its members held."""

    def __init__(self, history: GroupHistory) -> None:
        self.beats: dict[str, list[MemberHeartbeat]] = {}
        """By group, in the order in which they were sent."""
        self.holds: dict[tuple[str, str], list[Hold]] = {}
        """By group and partition, in the order of the grants."""
        for beat in history:
            if isinstance(beat, MemberHeartbeat):
                self.beats.setdefault(beat.group, []).append(beat)
        for group, beats in self.beats.items():
            beats.sort(key=lambda beat: beat.invoked_us)
            self._hold(group, beats)

    def of(self, group: str, member: str) -> Iterator[MemberHeartbeat]:
        return (beat for beat in self.beats.get(group, ()) if beat.member == member)

    def _hold(self, group: str, beats: list[MemberHeartbeat]) -> None:
        """A member has one heartbeat at a time on its way."""
        held: dict[str, dict[str, Hold]] = {}
        assigned: dict[str, set[str]] = {}
        for beat in beats:
            mine = held.setdefault(beat.member, {})
            if beat.sent_epoch < FIRST_EPOCH:
                released = list(mine)
            elif beat.owned is None:
                released = []
            else:
                # What it was given and does not name yet, it has not taken up, but it is its own.
                kept = {*beat.owned, *assigned.get(beat.member, ())}
                released = [partition for partition in mine if partition not in kept]
            for partition in released:
                mine.pop(partition).until_us = beat.invoked_us
            if beat.assigned is not None:
                assigned[beat.member] = set(beat.assigned)
                for partition in beat.assigned:
                    if partition not in mine:
                        hold = mine[partition] = Hold(beat.member, beat)
                        self.holds.setdefault((group, partition), []).append(hold)
        for each in self.holds.values():
            each.sort(key=lambda hold: hold.grant.at_us)
