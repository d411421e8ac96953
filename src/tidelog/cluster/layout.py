"""The nodes of a cluster: roles, racks and votes, decided before anything starts.

Brokers are numbered from 1 and dealt to the racks in turn: of four brokers and racks a and b,
1 and 3 stand in a, 2 and 4 in b. Brokers vote on the metadata themselves, unless controllers of
their own are asked for:

- one broker: one voter;
- two brokers, or brokers in two racks: as many voters in each half, and a tiebreaker, a node that
  is only a controller and stands in no rack. So either half may die and the other goes on;
- otherwise: the first three brokers, or five where there are five. With three racks or more these
  are spread over the racks, so that any rack may die.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidelog.cluster.errors import ClusterUsageError

HOST = "127.0.0.1"
BROKER = "broker"
CONTROLLER = "controller"
BROKERS_MAX = 100
REPLICATION_FACTOR = 3
_RACK = re.compile(r"[A-Za-z_][A-Za-z0-9._-]*")
_NO_RACKS = frozenset({"controller", "clients", "leader", "follower", "all"})
"""Words that mean something else where a rack can be named."""

Setting = str | int | bool


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePlan:
    """One node: what it is, and what is different for it."""

    id: int
    roles: tuple[str, ...] = (BROKER, CONTROLLER)
    rack: str | None = None
    port: int = 0
    settings: Mapping[str, Setting] = field(default_factory=dict)

    @property
    def is_broker(self) -> bool:
        return BROKER in self.roles

    @property
    def is_controller(self) -> bool:
        return CONTROLLER in self.roles

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def word(self) -> str:
        """What to call it before its number."""
        return BROKER if self.is_broker else CONTROLLER


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """A whole cluster; `settings` are everybody's."""

    cluster_id: str
    nodes: tuple[NodePlan, ...]
    profile: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    has_faults: bool = True

    @property
    def by_id(self) -> dict[int, NodePlan]:
        return {node.id: node for node in self.nodes}

    @property
    def broker_ids(self) -> tuple[int, ...]:
        return tuple(node.id for node in self.nodes if node.is_broker)

    @property
    def racks(self) -> dict[str, tuple[int, ...]]:
        """The nodes of each rack."""
        racks: dict[str, tuple[int, ...]] = {}
        for node in self.nodes:
            if node.rack is not None:
                racks[node.rack] = (*racks.get(node.rack, ()), node.id)
        return racks

    @property
    def voters(self) -> str:
        """As `controller.quorum.voters` wants it."""
        return ",".join(f"{node.id}@{node.address}" for node in self.nodes if node.is_controller)

    @property
    def bootstrap_servers(self) -> str:
        return ",".join(node.address for node in self.nodes if node.is_broker)


def plan_nodes(
    *, brokers: int, racks: Sequence[str] = (), controllers: int | None = None
) -> tuple[NodePlan, ...]:
    """The nodes by the rules above; `controllers` asks for so many nodes that only vote."""
    _check_counts(brokers, controllers)
    _check_racks(racks, brokers)
    rack_of = {each: racks[(each - 1) % len(racks)] for each in _from_one(brokers) if racks}
    voters = frozenset[int]() if controllers else _voters(brokers, len(racks))
    extra = controllers if controllers else int(_needs_tiebreaker(brokers, len(racks)))
    nodes = [
        NodePlan(
            id=each,
            roles=(BROKER, CONTROLLER) if each in voters else (BROKER,),
            rack=rack_of.get(each),
        )
        for each in _from_one(brokers)
    ]
    nodes += [NodePlan(id=brokers + each, roles=(CONTROLLER,)) for each in _from_one(extra)]
    return tuple(nodes)


def check_nodes(nodes: Sequence[NodePlan]) -> tuple[NodePlan, ...]:
    """Check nodes that were given by hand."""
    ids = [node.id for node in nodes]
    if len(set(ids)) != len(ids) or any(each < 0 for each in ids):
        raise ClusterUsageError(f"node ids must be different and not negative: {ids}")
    if not any(node.is_broker for node in nodes):
        raise ClusterUsageError("a cluster needs at least one broker")
    if not any(node.is_controller for node in nodes):
        raise ClusterUsageError("a cluster needs at least one controller")
    return tuple(nodes)


def _check_counts(brokers: int, controllers: int | None) -> None:
    if not 1 <= brokers <= BROKERS_MAX:
        raise ClusterUsageError(f"brokers: from 1 to {BROKERS_MAX}, not {brokers}")
    if controllers is not None and not 0 <= controllers <= BROKERS_MAX:
        raise ClusterUsageError(f"controllers: from 0 to {BROKERS_MAX}, not {controllers}")


def _check_racks(racks: Sequence[str], brokers: int) -> None:
    if isinstance(racks, str):
        raise ClusterUsageError(f"racks: a list of names, not the text {racks!r}")
    for rack in racks:
        if not _RACK.fullmatch(rack) or rack in _NO_RACKS:
            raise ClusterUsageError(
                f"racks: {rack!r} is no name for a rack (letters, digits, . _ -, not a digit first)"
            )
    if len(set(racks)) != len(racks):
        raise ClusterUsageError(f"racks: a name stands twice in {','.join(racks)}")
    if len(racks) > brokers:
        raise ClusterUsageError(f"racks: {len(racks)} racks need at least as many brokers")


def _needs_tiebreaker(brokers: int, racks: int) -> bool:
    return racks == 2 or brokers == 2


def _voters(brokers: int, racks: int) -> frozenset[int]:
    if _needs_tiebreaker(brokers, racks):
        in_each_half = 2 if brokers >= 4 else 1
        return frozenset(_from_one(2 * in_each_half))
    return frozenset(_from_one(1 if brokers < 3 else 3 if brokers < 5 else 5))


def _from_one(count: int) -> range:
    return range(1, count + 1)


def node_settings(
    plan: ClusterPlan, node: NodePlan, *, data: str, secret_file: str
) -> dict[str, Setting]:
    """Everything that the node's own file says; what was given by hand comes last."""
    from tidelog.cluster.profiles import profile_settings

    settings: dict[str, Setting] = {
        "node.id": node.id,
        "cluster.id": plan.cluster_id,
        "process.roles": ",".join(node.roles),
        "listeners": f"PLAINTEXT://{node.address}",
        "log.dirs": data,
        "controller.quorum.voters": plan.voters,
        "tidelog.cluster.secret.file": secret_file,
        "default.replication.factor": min(REPLICATION_FACTOR, len(plan.broker_ids)),
        "offsets.topic.replication.factor": min(REPLICATION_FACTOR, len(plan.broker_ids)),
        **profile_settings(plan.profile),
        **plan.settings,
        **node.settings,
    }
    if node.rack is not None:
        settings.setdefault("broker.rack", node.rack)
    if "tidelog.cluster.secret" in settings:
        del settings["tidelog.cluster.secret.file"]
    return settings
