"""Trace events of clients and sinks."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataRefreshed:
    """A broker described the cluster."""

    topics: int
    has_news: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebootstrapped:
    """None of these brokers could be reached: the addresses of the program are tried again."""

    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderHinted:
    """A broker that was asked by mistake named the new leader (KIP-951)."""

    partition: str
    leader_id: int
    leader_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdentified:
    """A cluster gave this producer its id."""

    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerEpochBumped:
    """After a gap the producer goes on under a new producer epoch of its own (KIP-360)."""

    producer_id: int
    producer_epoch: int
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionStateChanged:
    """A transactional producer is in this state now, under this identity."""

    transactional_id: str
    state: str
    producer_id: int | None
    producer_epoch: int | None
    error: str | None
    """Why it is in an error state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRetried:
    """A batch goes back into its queue, with the sequence that it has."""

    partition: str
    error: str
    attempts: int
    producer_id: int | None
    producer_epoch: int | None
    base_sequence: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchExpired:
    """A batch reached delivery.timeout.ms."""

    partition: str
    records: int
    was_sent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSplit:
    """A batch was too large for the broker and goes on in parts."""

    partition: str
    records: int
    parts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionReset:
    """A consumer had no usable position and took one by its policy."""

    partition: str
    policy: str
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PositionTruncated:
    """The log that a consumer had read was cut behind its back (KIP-320)."""

    partition: str
    position: int
    divergence: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReplicaChosen:
    """A leader sent a consumer to a nearer replica (KIP-392)."""

    partition: str
    replica_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAssigned:
    """A member of a group owns these partitions from now on."""

    generation_id: int
    member_id: str
    partitions: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRevoked:
    """It owns them no longer; `is_lost`: somebody else may own them already."""

    partitions: tuple[str, ...]
    is_lost: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRetried:
    """A request is made again, because of this."""

    step: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkTakenOver:
    """A driver owns the sink now."""

    sink: str
    run_id: str
    producer_id: int
    producer_epoch: int
    batch_id: int | None
    """The batch that was published last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerDoubted:
    """What was read of the marker is too old to act on, so it is read again."""

    age_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchBegun:
    """A batch has a producer epoch of its own."""

    batch_id: int
    producer_id: int
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSkipped:
    """It was published before."""

    batch_id: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCommitted:
    """It is published now; `by_marker`: the commit got no answer, and the marker showed it."""

    batch_id: int
    partitions: int
    records: int
    by_marker: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAborted:
    """It is not published."""

    batch_id: int
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkerRenewed:
    """The marker was written again, so that it does not expire."""

    batch_id: int | None
