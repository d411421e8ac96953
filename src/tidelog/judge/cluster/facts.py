"""Facts: what an observer can see of a node, as small values that need no node.

An observer tells the checker what is new after each step of the world. An *incarnation* is one run
of a node, from start to end: the same node in two incarnations is two leaders.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

METADATA = "__cluster_metadata-0"
"""The name under which the metadata log is observed, like any partition."""


class ObservedBatch(NamedTuple):
    """A record batch in a log; the checksum stands for its bytes."""

    base_offset: int
    end_offset: int
    leader_epoch: int
    checksum: int
    producer_id: int | None = None
    producer_epoch: int = 0
    end_sequence: int = 0


class Incarnation(NamedTuple):
    """One run of one node, from start to end."""

    node_id: int
    number: int

    def __str__(self) -> str:
        return f"node {self.node_id} (incarnation {self.number})"


class ObservedProducer(NamedTuple):
    """What a replica remembers about one producer: its newest batch."""

    producer_id: int
    producer_epoch: int
    end_sequence: int
    end_offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedReplica:
    """One replica of a partition, as the node that has it sees it."""

    incarnation: Incarnation
    partition: str
    is_leader: bool
    leader_epoch: int
    isr: frozenset[int]
    maximal_isr: frozenset[int]
    minimum: int
    """The least in-sync replicas for which the leader commits: never more than replicas."""
    high_watermark: int
    held_end_offset: int
    """What it vouches for: all that it wrote, or all that it synced."""
    fetched_by: tuple[tuple[int, int | None], ...] = ()
    """Of a leader: each member that it proposed last, and the broker epoch of the process that had
    fetched by then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPartition:
    """One partition, as committed metadata says."""

    partition: str
    replicas: tuple[int, ...]
    isr: frozenset[int]
    eligible: frozenset[int]
    last_known_leaders: tuple[int, ...]
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    minimum: int
    allows_unclean: bool
    has_eligible: bool = True
    """Whether the cluster keeps eligible leader replicas at all."""
    adding: frozenset[int] = frozenset()
    """The replicas that a reassignment brings."""
    removing: frozenset[int] = frozenset()
    """Those that leave at its end."""
    leader_is_recovering: bool = False
    """Whether the leader was chosen at the cost of records."""

    @property
    def is_moving(self) -> bool:
        return bool(self.adding or self.removing)


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedBroker:
    """One registration, as committed metadata says."""

    broker_id: int
    broker_epoch: int
    is_fenced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedQuorumNode:
    """One node's part in the metadata quorum."""

    incarnation: Incarnation
    voters: tuple[int, ...]
    quorum_epoch: int
    is_leader: bool
    voted_for: int | None
    high_watermark: int
    held_end_offset: int
    """What is durable here."""
    applied_end_offset: int

    @property
    def is_voter(self) -> bool:
        return self.incarnation.node_id in self.voters
