"""A cluster at one moment, as a value: for tables, for JSON, for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tidelog.cluster.fault_registry import ActiveFault

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
class ClusterStatus:
    """Nodes, partitions, groups and faults."""

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
        "nodes": [
            {
                "id": node.id,
                "state": node.state,
                "roles": list(node.roles),
                "rack": node.rack,
                "address": node.address,
                "pid": node.pid,
                "is_active_controller": node.is_active_controller,
                "log": node.log_path,
            }
            for node in status.nodes
        ],
        "partitions_total": status.partitions_total,
        "partitions": [
            {
                "topic": each.topic,
                "partition": each.partition,
                "leader": each.leader,
                "leader_epoch": each.leader_epoch,
                "isr": list(each.isr),
                "replicas": list(each.replicas),
                "high_watermark": each.high_watermark,
                "log_end_offsets": {str(key): end for key, end in each.log_end_offsets.items()},
            }
            for each in status.partitions
        ],
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
        "faults": [fault_as_json(each) for each in status.faults],
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
