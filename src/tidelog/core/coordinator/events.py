"""What a coordinator writes to its trace."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorLoaded:
    """A partition's records are applied: its coordinator answers."""

    partition: str
    leader_epoch: int
    end_offset: int
    records: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorDropped:
    """A partition's state is forgotten: another node leads it, or its log failed."""

    partition: str
    leader_epoch: int
    reason: str
