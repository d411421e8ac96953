"""Whom a fault is meant for, as people write it, and who that is just now.

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

Target = int | str
_FORMS = "a node id, rack:NAME, leader:TOPIC-0, follower:TOPIC-0, controller or all"
CLIENTS = "clients"
ONE_CLIENT = "client:"
ANYONE = "*"


class Situation(Protocol):
    """What must be known to say who is meant."""

    @property
    def node_ids(self) -> tuple[int, ...]: ...

    @property
    def racks(self) -> Mapping[str, tuple[int, ...]]: ...

    def leader(self, topic: str, partition: int) -> int | None: ...

    def followers(self, topic: str, partition: int) -> tuple[int, ...]: ...

    def controller(self) -> int | None: ...

    def is_running(self, node_id: int) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A partition."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


def resolve(target: Target, situation: Situation) -> tuple[int, ...]:
    """At least one node; ClusterUsageError for nonsense, ClusterError if there is nobody now."""
    text = str(target).strip()
    if text.isdecimal():
        node_id = int(text)
        if node_id not in situation.node_ids:
            known = ", ".join(map(str, situation.node_ids))
            raise ClusterUsageError(f"there is no node {text}; the nodes are {known}")
        return (node_id,)
    if text == "all":
        return situation.node_ids
    if text == "controller":
        controller = situation.controller()
        if controller is None:
            raise ClusterError("there is no active controller now")
        return (controller,)
    word, colon, rest = text.partition(":")
    if colon and word in ("leader", "follower", "followers"):
        return _of_partition(word, read_place(rest), situation)
    rack = rest if colon and word == "rack" else text
    if rack in situation.racks:
        return situation.racks[rack]
    if colon and word == "rack":
        raise ClusterUsageError(f"there is no rack {rack!r}; {_racks(situation)}")
    raise ClusterUsageError(f"{text!r} is nobody here: {_FORMS}; {_racks(situation)}")


def resolve_all(targets: tuple[Target, ...], situation: Situation) -> tuple[int, ...]:
    """All of them, each node once, in the order in which they were named."""
    if not targets:
        raise ClusterUsageError(f"say whom: {_FORMS}")
    found = [node_id for target in targets for node_id in resolve(target, situation)]
    return tuple(dict.fromkeys(found))


def resolve_host(target: Target, situation: Situation) -> tuple[Target, ...]:
    """The same for one end of a connection, which may also be clients, or anyone."""
    text = str(target).strip()
    if text in (CLIENTS, ANYONE) or (text.startswith(ONE_CLIENT) and text != ONE_CLIENT):
        return (text,)
    return resolve(target, situation)


def read_place(text: str) -> Place:
    """`orders-0`: the topic is everything before the last dash."""
    topic, dash, index = text.strip().rpartition("-")
    if not (topic and dash and index.isdecimal()):
        raise ClusterUsageError(f"{text!r} is no partition; write it like orders-0")
    return Place(topic=topic, partition=int(index))


def _of_partition(word: str, place: Place, situation: Situation) -> tuple[int, ...]:
    if word == "leader":
        leader = situation.leader(place.topic, place.partition)
        if leader is None:
            raise ClusterError(f"{place} has no leader now")
        return (leader,)
    followers = situation.followers(place.topic, place.partition)
    if not followers:
        raise ClusterError(f"{place} has no follower")
    if word == "followers":
        return followers
    running = [each for each in followers if situation.is_running(each)]
    return ((running or followers)[0],)


def _racks(situation: Situation) -> str:
    if not situation.racks:
        return "there are no racks"
    return f"the racks are {', '.join(situation.racks)}"
