"""The options of a cluster, and the plan that follows from them and from what `data` holds.

A data directory that holds a cluster is resumed: its nodes cannot be changed, while profile,
settings and ports may. What is not given stays as it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from random import SystemRandom

from tidelog.cluster.errors import ClusterUsageError
from tidelog.cluster.layout import ClusterPlan, NodePlan, Setting, check_nodes, plan_nodes
from tidelog.cluster.ports import free_ports
from tidelog.cluster.profiles import DEFAULT_PROFILE, profile_settings

BROKERS = 3
PORT_MAX = 2**16 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterOptions:
    """None means: as it was in the data directory, or the default."""

    brokers: int | None = None
    racks: Sequence[str] | None = None
    controllers: int | None = None
    nodes: Sequence[NodePlan] | None = None
    profile: str | None = None
    port: int = 0
    settings: Mapping[str, Setting] | None = None
    settings_of: Mapping[int, Mapping[str, Setting]] | None = None
    has_faults: bool = True

    @property
    def has_members(self) -> bool:
        """Returns whether the options name the nodes."""
        given = (self.brokers, self.racks, self.controllers, self.nodes)
        return any(each is not None for each in given)

    def members(self) -> tuple[NodePlan, ...]:
        """The nodes of a new cluster."""
        if self.nodes is not None:
            return check_nodes(self.nodes)
        brokers = BROKERS if self.brokers is None else self.brokers
        racks = () if self.racks is None else self.racks
        return plan_nodes(brokers=brokers, racks=racks, controllers=self.controllers)

    def check(self) -> None:
        """ClusterUsageError for options that no cluster can have."""
        members = self.members()
        if self.profile is not None:
            profile_settings(self.profile)
        if not 0 <= self.port <= PORT_MAX - len(members) + 1:
            raise ClusterUsageError(f"port: from 0 to {PORT_MAX - len(members) + 1}")

    def settle(self, existing: ClusterPlan | None) -> ClusterPlan:
        """The plan, with ports; `existing` is the one to be resumed."""
        if existing is None:
            plan = ClusterPlan(
                cluster_id=f"local-{SystemRandom().getrandbits(48):012x}",
                nodes=self.members(),
                profile=self.profile or DEFAULT_PROFILE,
                settings=dict(self.settings or {}),
            )
        else:
            self._check_members(existing)
            plan = replace(
                existing,
                profile=self.profile or existing.profile,
                settings=existing.settings if self.settings is None else dict(self.settings),
            )
        plan = replace(plan, has_faults=self.has_faults, nodes=self._with_settings(plan.nodes))
        return replace(plan, nodes=self._with_ports(plan.nodes))

    def _check_members(self, existing: ClusterPlan) -> None:
        if not self.has_members:
            return
        wanted = self.members()
        if [_gist(node) for node in wanted] != [_gist(node) for node in existing.nodes]:
            raise ClusterUsageError(
                f"the data is of {described(existing.nodes)}, which cannot become "
                f"{described(wanted)}: choose another directory, or leave these options out"
            )

    def _with_settings(self, nodes: Sequence[NodePlan]) -> tuple[NodePlan, ...]:
        if self.settings_of is None:
            return tuple(nodes)
        unknown = sorted(set(self.settings_of) - {node.id for node in nodes})
        if unknown:
            raise ClusterUsageError(f"settings_of: there is no node {unknown[0]}")
        return tuple(
            replace(node, settings={**node.settings, **self.settings_of.get(node.id, {})})
            for node in nodes
        )

    def _with_ports(self, nodes: Sequence[NodePlan]) -> tuple[NodePlan, ...]:
        if self.port:
            ports = [self.port + index for index in range(len(nodes))]
        elif all(node.port for node in nodes):
            return tuple(nodes)
        else:
            ports = free_ports(len(nodes))
        both = zip(nodes, ports, strict=True)
        return tuple(replace(node, port=port) for node, port in both)


def described(nodes: Sequence[NodePlan]) -> str:
    """`4 brokers in racks a, b, and 1 controller`."""
    brokers = [node for node in nodes if node.is_broker]
    words = f"{len(brokers)} broker{'s' if len(brokers) > 1 else ''}"
    racks = dict.fromkeys(node.rack for node in brokers if node.rack is not None)
    if racks:
        words += f" in rack{'s' if len(racks) > 1 else ''} {', '.join(racks)}"
    controllers = len(nodes) - len(brokers)
    if controllers:
        words += f" and {controllers} controller{'s' if controllers > 1 else ''}"
    return words


def _gist(node: NodePlan) -> tuple[object, ...]:
    return node.id, node.roles, node.rack
