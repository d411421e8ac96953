"""Elections: who leads a partition, given who is in sync, eligible, alive, and what is allowed.

The order of the candidates is the order of the assignment. Racks play no part: diversity is the
placement's affair. Each source is tried only when those before it gave nobody:

  1. the present leader, if it may go on (an election for the preferred replica asks that one first)
  2. a replica in sync
  3. when nobody is in sync, an eligible leader replica: it has everything that was committed
  4. when nobody is eligible either, the last known leader: it may have lost its tail
  5. where the topic allows it, any replica that is alive: it may never have had the tail
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from tidelog.core.controller.events import ElectionKind
from tidelog.core.metadata.cluster import PartitionState


class Election(Enum):
    """What an election is for."""

    ONLINE = "online"
    """Keep the partition led, by a replica that has everything."""
    PREFERRED = "preferred"
    """The first of the replicas shall lead, if it may."""
    UNCLEAN = "unclean"
    """Keep the partition led, even if it costs records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ElectionRules:
    """What holds for one partition while something about it is decided."""

    is_acceptable: Callable[[int], bool]
    """Is this broker alive, staying, and its copy's disk in order?"""
    min_insync_replicas: int
    keeps_eligible: bool
    """Has the cluster agreed on eligible leader replicas (KIP-966)?"""


class Elected(NamedTuple):
    """Who leads, and why that one; nobody is a result, too."""

    leader: int | None
    kind: ElectionKind | None

    @property
    def may_lose_records(self) -> bool:
        return self.kind in (ElectionKind.LAST_KNOWN, ElectionKind.UNCLEAN)


NO_LEADER = Elected(None, None)


def elect(
    before: PartitionState,
    *,
    replicas: tuple[int, ...],
    isr: tuple[int, ...],
    eligible: tuple[int, ...],
    election: Election,
    rules: ElectionRules,
) -> Elected:
    """The leader of a partition whose replicas, in-sync set and eligible replicas will be these."""
    source = isr or eligible
    kind = ElectionKind.CLEAN if isr else ElectionKind.ELIGIBLE

    def may_lead(replica: int | None) -> bool:
        return replica in source and rules.is_acceptable(replica)

    preferred = replicas[0]
    if election is Election.PREFERRED and may_lead(preferred):
        return Elected(preferred, ElectionKind.PREFERRED if isr else kind)
    if may_lead(before.leader):
        return Elected(before.leader, kind)
    for replica in replicas:
        if may_lead(replica):
            return Elected(replica, kind)
    if rules.keeps_eligible and not source and len(before.last_known_leaders) == 1:
        last_known = before.last_known_leaders[0]
        if last_known in replicas and rules.is_acceptable(last_known):
            return Elected(last_known, ElectionKind.LAST_KNOWN)
    if election is Election.UNCLEAN:
        for replica in replicas:
            if rules.is_acceptable(replica):
                return Elected(replica, ElectionKind.UNCLEAN)
    return NO_LEADER
