"""What a metadata record changed, as values: for the node that must follow, and for the trace."""

from __future__ import annotations

from dataclasses import dataclass

from tidelog.core.metadata.cluster import ListenerEndpoint
from tidelog.core.model.ids import TopicId


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRegistered:
    """A broker process was let in, fenced or not; from now on it is reached here."""

    broker_id: int
    broker_epoch: int
    rack: str | None
    is_fenced: bool
    endpoints: tuple[ListenerEndpoint, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerChanged:
    """A registered broker was fenced, unfenced or began to leave."""

    broker_id: int
    broker_epoch: int
    is_fenced: bool
    in_controlled_shutdown: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerUnregistered:
    """A broker is forgotten."""

    broker_id: int
    broker_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicCreated:
    """A topic exists; its partitions follow as changes of their own."""

    topic: str
    topic_id: TopicId


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDeleted:
    """A topic is gone with all its partitions and configs."""

    topic: str
    topic_id: TopicId
    partitions_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionCreated:
    """A partition exists."""

    topic: str
    topic_id: TopicId
    index: int
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...]
    leader_is_recovering: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionChanged:
    """Something about a partition is new: leader, leader epoch, in-sync set, placement."""

    topic: str
    topic_id: TopicId
    index: int
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...]
    leader_is_recovering: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EligibleLeadersCleared:
    """Nobody outside the in-sync set may lead any more: one record, many partitions."""

    partitions: tuple[PartitionChanged, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigChanged:
    """A setting has another value, or none of its own any more."""

    resource_type: int
    resource_name: str
    name: str
    value: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureLevelChanged:
    """The cluster agreed on another level of a feature."""

    name: str
    level: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerIdsReserved:
    """Producer ids below this one are given away for ever."""

    broker_id: int
    next_producer_id: int


Change = (
    BrokerRegistered
    | BrokerChanged
    | BrokerUnregistered
    | TopicCreated
    | TopicDeleted
    | PartitionCreated
    | PartitionChanged
    | EligibleLeadersCleared
    | ConfigChanged
    | FeatureLevelChanged
    | ProducerIdsReserved
)
