"""What replication writes to the trace: who leads, who follows, who is in sync, what was cut."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BecameLeader:
    """This broker leads a partition in a new leader epoch; not a byte of its log changed."""

    partition: str
    broker_id: int
    leader_epoch: int
    start_offset: int
    high_watermark: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BecameFollower:
    """This broker copies a partition from its leader; without one it waits."""

    partition: str
    broker_id: int
    leader_id: int | None
    leader_epoch: int
    log_end_offset: int
    high_watermark: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerTruncated:
    """A follower dropped records that its leader does not have."""

    partition: str
    broker_id: int
    leader_epoch: int
    from_end_offset: int
    to_end_offset: int
    high_watermark: int
    """Before the cut: a cut below it means that committed records are gone (unclean election)."""
    dropped: tuple[tuple[int, int, int], ...]
    """(first offset, end offset, leader epoch) of the batches that went, the first hundred."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerStartedAnew:
    """A follower's whole log lies outside of its leader's: it begins again where that one does."""

    partition: str
    broker_id: int
    leader_epoch: int
    from_end_offset: int
    at_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerBackedOff:
    """A leader could not be reached or refused a fetch; it is asked again after a while."""

    broker_id: int
    leader_id: int
    partition: str | None
    """None: the whole link."""
    reason: str
    wait_ms: int | None
    """None: until the metadata says something new."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrProposed:
    """A leader asks the controller for another in-sync set."""

    partition: str
    broker_id: int
    leader_epoch: int
    before: tuple[int, ...]
    isr: tuple[int, ...]
    high_watermark: int
    log_end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrCommitted:
    """The leader knows another in-sync set, from an answer or from the metadata."""

    partition: str
    broker_id: int
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IsrRefused:
    """The controller did not take a proposal."""

    partition: str
    broker_id: int
    leader_epoch: int
    isr: tuple[int, ...]
    error: str
