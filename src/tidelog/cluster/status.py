"""A cluster at one moment, as a value: for tables, for JSON, for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tidelog.cluster.fault_registry import ActiveFault

if TYPE_CHECKING:  # `tidelog up` starts without it
    from tidelog.core.model.ids import TopicPartition

UP = "up"
FENCED = "fenced"
SILENT = "silent"
PAUSED = "paused"
DOWN = "down"
"""The states of a node: serving, not (yet) allowed to lead, running without an answer, stopped by
SIGSTOP, not running. A node that is only a controller is never fenced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStatus:
    """One node."""

    id: int
    state: str
    roles: tuple[str, ...]
    rack: str | None
    address: str
    pid: int | None
    is_active_controller: bool
    log_path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionStatus:
    """One partition; what no broker answers is None, or is not in `log_end_offsets`."""

    topic: str
    partition: int
    leader: int | None
    leader_epoch: int | None
    isr: tuple[int, ...]
    replicas: tuple[int, ...]
    high_watermark: int | None = None
    log_end_offsets: dict[int, int] = field(default_factory=dict)
    """By broker."""
    last_stable_offset: int | None = None

    @property
    def held_back(self) -> int | None:
        """How far the last stable offset is behind the high watermark: what open transactions keep
        from readers of committed records."""
        if self.last_stable_offset is None or self.high_watermark is None:
            return None
        return max(0, self.high_watermark - self.last_stable_offset)


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupStatus:
    """One consumer group; what could not be told is None."""

    group: str
    state: str | None
    type: str | None
    members: int | None
    lag: int | None
    """Of all its partitions together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenTransactionStatus:
    """A transaction without an end, or whose markers are not all written; unknown is None."""

    transactional_id: str
    coordinator: int
    producer_id: int
    state: str
    start_ms: int | None
    """On the coordinator's clock."""
    partitions: tuple[TopicPartition, ...] | None
    """Those that still wait for the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterStatus:
    """Nodes, partitions, groups, open transactions and faults."""

    cluster_id: str
    data: str
    bootstrap_servers: str
    profile: str
    controller: int | None
    quorum_epoch: int | None
    nodes: tuple[NodeStatus, ...]
    partitions: tuple[PartitionStatus, ...]
    """The first ones by name, if there are very many."""
    partitions_total: int | None
    """None: no broker answers."""
    faults: tuple[ActiveFault, ...]
    groups: tuple[GroupStatus, ...] = ()
    """The first ones by name, if there are many."""
    transactions: tuple[OpenTransactionStatus, ...] = ()
    """The open ones; the first by name, if there are many."""

    @property
    def is_down(self) -> bool:
        return all(node.state == DOWN for node in self.nodes)

    @property
    def is_healthy(self) -> bool:
        """Every node serves, there is a controller, and every partition shown is fully in sync."""
        return (
            all(node.state == UP for node in self.nodes)
            and self.controller is not None
            and all(
                each.leader is not None and set(each.isr) == set(each.replicas)
                for each in self.partitions
            )
        )


def status_as_json(status: ClusterStatus) -> dict[str, Any]:
    """The document of `tidelog status --json`."""
    return {
        "cluster_id": status.cluster_id,
        "data": status.data,
        "bootstrap_servers": status.bootstrap_servers,
        "profile": status.profile,
        "controller": status.controller,
        "quorum_epoch": status.quorum_epoch,
        "is_healthy": status.is_healthy,
        "nodes": [_node_as_json(each) for each in status.nodes],
        "partitions_total": status.partitions_total,
        "partitions": [_partition_as_json(each) for each in status.partitions],
        "groups": [
            {
                "group": each.group,
                "state": each.state,
                "type": each.type,
                "members": each.members,
                "lag": each.lag,
            }
            for each in status.groups
        ],
        "transactions": [
            {
                "transactional_id": each.transactional_id,
                "coordinator": each.coordinator,
                "producer_id": each.producer_id,
                "state": each.state,
                "start_ms": each.start_ms,
                "partitions": None if each.partitions is None else list(map(str, each.partitions)),
            }
            for each in status.transactions
        ],
        "faults": [fault_as_json(each) for each in status.faults],
    }


def _node_as_json(node: NodeStatus) -> dict[str, Any]:
    return {
        "id": node.id,
        "state": node.state,
        "roles": list(node.roles),
        "rack": node.rack,
        "address": node.address,
        "pid": node.pid,
        "is_active_controller": node.is_active_controller,
        "log": node.log_path,
    }


def _partition_as_json(partition: PartitionStatus) -> dict[str, Any]:
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "isr": list(partition.isr),
        "replicas": list(partition.replicas),
        "high_watermark": partition.high_watermark,
        "last_stable_offset": partition.last_stable_offset,
        "log_end_offsets": {str(node): end for node, end in partition.log_end_offsets.items()},
    }


def fault_as_json(fault: ActiveFault) -> dict[str, Any]:
    """One entry of `tidelog fault list --json`."""
    return {
        "id": fault.id,
        "what": fault.what,
        "text": fault.text,
        "nodes": list(fault.nodes),
        "until_ms": fault.until_ms,
        "rules": list(fault.rules),
    }
