"""The targets of a fault, as people write them, and the nodes they mean just now.

2                     node 2
rack:a, or just a     every broker of rack a
leader:orders-0       the leader of that partition
follower:orders-0     one of its followers: the first that runs, by preference
followers:orders-0    all of them
controller            the active controller
all                   every node
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from tidelog.cluster.errors import ClusterError, ClusterUsageError
from tidelog.faults.hosts import ANYONE, CLIENTS, ONE_CLIENT

Target = int | str
_FORMS = "a node id, rack:NAME, leader:TOPIC-0, follower:TOPIC-0, controller or all"


class TargetContext(Protocol):
    """What must be known to resolve a target."""

    @property
    def node_ids(self) -> tuple[int, ...]: ...

    @property
    def racks(self) -> Mapping[str, tuple[int, ...]]: ...

    def leader(self, topic: str, partition: int) -> int | None: ...

    def followers(self, topic: str, partition: int) -> tuple[int, ...]: ...

    def controller(self) -> int | None: ...

    def is_running(self, node_id: int) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionName:
    """A partition as it is written in a target."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def resolve(target: Target, context: TargetContext) -> tuple[int, ...]:
    """At least one node.

    ClusterUsageError for an unknown target, ClusterError for one that means no node now.
    """
    text = str(target).strip()
    if text.isdecimal():
        node_id = int(text)
        if node_id not in context.node_ids:
            known = ", ".join(map(str, context.node_ids))
            raise ClusterUsageError(f"there is no node {text}; the nodes are {known}")
        return (node_id,)
    if text == "all":
        return context.node_ids
    if text == "controller":
        controller = context.controller()
        if controller is None:
            raise ClusterError("there is no active controller now")
        return (controller,)
    word, colon, rest = text.partition(":")
    if colon and word in ("leader", "follower", "followers"):
        return _of_partition(word, parse_partition(rest), context)
    rack = rest if colon and word == "rack" else text
    if rack in context.racks:
        return context.racks[rack]
    if colon and word == "rack":
        raise ClusterUsageError(f"there is no rack {rack!r}; {_racks(context)}")
    raise ClusterUsageError(f"unknown target {text!r}: name {_FORMS}; {_racks(context)}")


def resolve_all(targets: tuple[Target, ...], context: TargetContext) -> tuple[int, ...]:
    """All of them, each node once, in the order in which they were named."""
    if not targets:
        raise ClusterUsageError(f"no target given: name {_FORMS}")
    found = [node_id for target in targets for node_id in resolve(target, context)]
    return tuple(dict.fromkeys(found))


def resolve_host(target: Target, context: TargetContext) -> tuple[Target, ...]:
    """The same for one end of a connection, which may also be clients, or anyone."""
    text = str(target).strip()
    if text in (CLIENTS, ANYONE) or (text.startswith(ONE_CLIENT) and text != ONE_CLIENT):
        return (text,)
    return resolve(target, context)


def parse_partition(text: str) -> PartitionName:
    """`orders-0`: the topic is everything before the last dash."""
    topic, dash, index = text.strip().rpartition("-")
    if not (topic and dash and index.isdecimal()):
        raise ClusterUsageError(f"{text!r} is no partition; write it like orders-0")
    return PartitionName(topic=topic, partition=int(index))


def _of_partition(word: str, name: PartitionName, context: TargetContext) -> tuple[int, ...]:
    if word == "leader":
        leader = context.leader(name.topic, name.partition)
        if leader is None:
            raise ClusterError(f"{name} has no leader now")
        return (leader,)
    followers = context.followers(name.topic, name.partition)
    if not followers:
        raise ClusterError(f"{name} has no follower")
    if word == "followers":
        return followers
    running = [each for each in followers if context.is_running(each)]
    return ((running or followers)[0],)


def _racks(context: TargetContext) -> str:
    if not context.racks:
        return "there are no racks"
    return f"the racks are {', '.join(context.racks)}"
