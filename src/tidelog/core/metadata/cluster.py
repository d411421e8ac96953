"""The things an image is made of, and how a record makes or changes one of them.

Everything is immutable except the list of a topic's partitions, which only the image touches.
This is where the sentinels of the record format end: a partition without a leader has None.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum
from typing import NamedTuple

from tidelog.core.metadata.records import (
    FENCED,
    LEADER_AS_BEFORE,
    NO_LEADER,
    RECOVERY_AS_BEFORE,
    UNFENCED,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
)
from tidelog.core.model.ids import TopicId

UNASSIGNED_DIRECTORY = bytes(15) + b"\x01"
"""Kafka's id for "the broker may choose the log directory"."""
MIGRATING_DIRECTORY = bytes(16)
"""Kafka's id for "not known yet"."""
LOST_DIRECTORY = bytes(15) + b"\x02"
"""Kafka's id for "in some directory that failed"."""


class ResourceType(IntEnum):
    """What a setting belongs to, by Kafka's numbers."""

    TOPIC = 2
    BROKER = 4
    GROUP = 32


class ConfigResource(NamedTuple):
    """One thing that has settings; an empty broker name stands for the whole cluster."""

    type: int
    name: str


class ListenerEndpoint(NamedTuple):
    """Where one listener of a broker is reached."""

    listener: str
    host: str
    port: int
    security_protocol: int


class FeatureRange(NamedTuple):
    """The levels of a feature that a broker could run."""

    name: str
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredBroker:
    """One registration of one broker process."""

    broker_id: int
    broker_epoch: int
    incarnation_id: bytes
    endpoints: tuple[ListenerEndpoint, ...]
    rack: str | None
    is_fenced: bool
    in_controlled_shutdown: bool
    log_directories: tuple[bytes, ...]
    features: tuple[FeatureRange, ...] = ()

    @property
    def is_active(self) -> bool:
        """May it be in an in-sync set?"""
        return not self.is_fenced and not self.in_controlled_shutdown

    def has_working(self, directory: bytes) -> bool:
        """Whether a replica said to lie there is there, or will be once the broker has chosen."""
        if directory in (UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY):
            return True
        if directory == LOST_DIRECTORY:
            return False
        # A broker that names no directory at all is from a time when none had an id.
        return not self.log_directories or directory in self.log_directories

    def endpoint(self, listener: str) -> ListenerEndpoint | None:
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionState:
    """Who copies a partition, who is in sync, who leads.

    The leader epoch grows when a leader is named, the partition epoch with every change.
    """

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    directories: tuple[bytes, ...]
    leader_is_recovering: bool = False
    eligible_leader_replicas: tuple[int, ...] = ()
    last_known_leaders: tuple[int, ...] = ()
    adding_replicas: tuple[int, ...] = ()
    """Those that a running reassignment brings; they count once they are in sync."""
    removing_replicas: tuple[int, ...] = ()
    """Those that leave when it ends."""

    def directory(self, broker_id: int) -> bytes:
        return self.directories[self.replicas.index(broker_id)]

    def check(self) -> None:
        assert self.replicas
        assert len(set(self.replicas)) == len(self.replicas), self
        assert len(self.directories) == len(self.replicas), self
        assert set(self.isr) <= set(self.replicas), self
        assert set(self.eligible_leader_replicas) <= set(self.replicas), self
        assert not set(self.eligible_leader_replicas) & set(self.isr), self
        assert set(self.adding_replicas) <= set(self.replicas), self
        assert set(self.removing_replicas) <= set(self.replicas), self
        assert self.leader is None or self.leader in self.isr, self
        assert self.leader_epoch >= 0, self
        assert self.partition_epoch >= 0, self


@dataclass(slots=True, kw_only=True)
class TopicState:
    """A topic; its partitions are numbered by their place in the list."""

    name: str
    topic_id: TopicId
    partitions: list[PartitionState] = field(default_factory=list)


def collision_form(name: str) -> str | None:
    """The form in which names with "." or "_" can be mistaken for each other, if it has one."""
    if "." not in name and "_" not in name:
        return None
    return name.replace(".", "_")


def broker_of(record: RegisterBrokerRecord) -> RegisteredBroker:
    return RegisteredBroker(
        broker_id=record.broker_id,
        broker_epoch=record.broker_epoch,
        incarnation_id=record.incarnation_id,
        endpoints=tuple(
            ListenerEndpoint(e.name, e.host, e.port, e.security_protocol) for e in record.end_points
        ),
        rack=record.rack,
        is_fenced=record.fenced,
        in_controlled_shutdown=record.in_controlled_shutdown,
        log_directories=tuple(record.log_dirs),
        features=tuple(
            FeatureRange(f.name, f.min_supported_version, f.max_supported_version)
            for f in record.features
        ),
    )


def broker_record(broker: RegisteredBroker) -> RegisterBrokerRecord:
    """The record that makes this registration."""
    return RegisterBrokerRecord(
        broker_id=broker.broker_id,
        incarnation_id=broker.incarnation_id,
        broker_epoch=broker.broker_epoch,
        end_points=[
            BrokerEndpoint(
                name=e.listener, host=e.host, port=e.port, security_protocol=e.security_protocol
            )
            for e in broker.endpoints
        ],
        features=[
            BrokerFeature(name=name, min_supported_version=low, max_supported_version=high)
            for name, low, high in broker.features
        ],
        rack=broker.rack,
        fenced=broker.is_fenced,
        in_controlled_shutdown=broker.in_controlled_shutdown,
        log_dirs=list(broker.log_directories),
    )


def broker_after(
    broker: RegisteredBroker, record: BrokerRegistrationChangeRecord
) -> RegisteredBroker:
    return replace(
        broker,
        is_fenced={UNFENCED: False, FENCED: True}.get(record.fenced, broker.is_fenced),
        in_controlled_shutdown=broker.in_controlled_shutdown or bool(record.in_controlled_shutdown),
        log_directories=tuple(record.log_dirs) or broker.log_directories,
    )


def partition_of(record: PartitionRecord) -> PartitionState:
    return PartitionState(
        replicas=tuple(record.replicas),
        isr=tuple(record.isr),
        leader=_leader(record.leader),
        leader_epoch=record.leader_epoch,
        partition_epoch=record.partition_epoch,
        directories=tuple(record.directories) or (bytes(16),) * len(record.replicas),
        leader_is_recovering=record.leader_recovery_state != 0,
        eligible_leader_replicas=tuple(record.eligible_leader_replicas or ()),
        last_known_leaders=tuple(record.last_known_elr or ()),
        adding_replicas=tuple(record.adding_replicas),
        removing_replicas=tuple(record.removing_replicas),
    )


def partition_after(state: PartitionState, record: PartitionChangeRecord) -> PartitionState:
    """The state with everything new that the record names, and one partition epoch later."""
    names_leader = record.leader != LEADER_AS_BEFORE
    recovery = record.leader_recovery_state
    replicas = _new(record.replicas, state.replicas)
    directories = state.directories
    if record.directories is not None:
        directories = tuple(record.directories)
    elif len(replicas) != len(directories):
        directories = (bytes(16),) * len(replicas)
    return PartitionState(
        replicas=replicas,
        isr=_new(record.isr, state.isr),
        leader=_leader(record.leader) if names_leader else state.leader,
        leader_epoch=state.leader_epoch + 1 if names_leader else state.leader_epoch,
        partition_epoch=state.partition_epoch + 1,
        directories=directories,
        leader_is_recovering=(
            state.leader_is_recovering if recovery == RECOVERY_AS_BEFORE else recovery != 0
        ),
        eligible_leader_replicas=_new(
            record.eligible_leader_replicas, state.eligible_leader_replicas
        ),
        last_known_leaders=_new(record.last_known_elr, state.last_known_leaders),
        adding_replicas=_new(record.adding_replicas, state.adding_replicas),
        removing_replicas=_new(record.removing_replicas, state.removing_replicas),
    )


def partition_record(topic_id: TopicId, index: int, state: PartitionState) -> PartitionRecord:
    """The record that makes a partition with this state."""
    return PartitionRecord(
        partition_id=index,
        topic_id=topic_id,
        replicas=list(state.replicas),
        isr=list(state.isr),
        removing_replicas=list(state.removing_replicas),
        adding_replicas=list(state.adding_replicas),
        leader=NO_LEADER if state.leader is None else state.leader,
        leader_recovery_state=int(state.leader_is_recovering),
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        directories=list(state.directories),
        eligible_leader_replicas=list(state.eligible_leader_replicas) or None,
        last_known_elr=list(state.last_known_leaders) or None,
    )


def _leader(leader: int) -> int | None:
    return None if leader == NO_LEADER else leader


def _new(changed: list[int] | None, before: tuple[int, ...]) -> tuple[int, ...]:
    return before if changed is None else tuple(changed)
