"""The rules in force at one node: what happens to a frame on its way, decided purely.

Time comes in as an argument and chance as a given `Random`. A rule that stays in the table over a
replacement, with the same id and the same content, keeps its counts: a test that adds a second
fault does not begin the first one again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random
from typing import NamedTuple

from tidelog.core.model.ids import TopicPartition
from tidelog.faults.fields import BadRule, api_keys
from tidelog.faults.hosts import ANYONE, CLIENTS, ONE_CLIENT, Host
from tidelog.faults.kinds import RULE_FIELDS
from tidelog.faults.rules import FaultRule, address_key

NODE_CLIENT = "node-"
"""Nodes call themselves `node-N` in the headers of their requests."""
BETWEEN_HOSTS = tuple(name for name, fields in RULE_FIELDS.items() if "purpose" in fields)
"""Kinds of faults on a way from one host to another."""


class LinkDirection(NamedTuple):
    """From whom to whom; a node is a number, a client its client id, None is unknown."""

    source: Host | None
    target: Host | None
    purpose: str | None = None

    @property
    def back(self) -> LinkDirection:
        return LinkDirection(self.target, self.source, self.purpose)


class FaultTable:
    """Rules in force at one node. Invariant: `counts` and `_seen` have rules of the table only."""

    def __init__(self, *, node_id: int, random: Random) -> None:
        self.node_id = node_id
        self.rules: tuple[FaultRule, ...] = ()
        self.peers: Mapping[str, int] = {}
        self.counts: dict[str, int] = {}
        """How often each rule took effect: frames held, delayed, lost; errors answered."""
        self._seen: dict[str, int] = {}
        self._random = random

    # Changes.

    def refuse(self, rules: Iterable[FaultRule], peers: Mapping[str, int]) -> None:
        """BadRule if a rule names a node that has no address."""
        known = {self.node_id, *peers.values()}
        for rule in rules:
            for host in (rule.source, rule.target) if rule.what in BETWEEN_HOSTS else ():
                if isinstance(host, int) and host not in known:
                    raise BadRule(f'rule {rule.id!r} names node {host}, which is not in "peers"')

    def replace(
        self,
        rules: tuple[FaultRule, ...],
        peers: Mapping[str, int],
        counts: Mapping[str, int] | None = None,
    ) -> None:
        """All at once. `counts` are those of an earlier life of this process."""
        kept = {rule.id for rule in set(self.rules) & set(rules)}
        old_counts, old_seen = self.counts, self._seen
        self.rules, self.peers = rules, dict(peers)
        self.counts = {rule.id: old_counts[rule.id] if rule.id in kept else 0 for rule in rules}
        self._seen = {rule_id: old_seen[rule_id] for rule_id in sorted(kept & set(old_seen))}
        for rule in rules:
            if counts and counts.get(rule.id):
                self.counts[rule.id] = counts[rule.id]
                self._seen[rule.id] = rule.nth - 1 + counts[rule.id]

    def expire(self, wall_ms: int) -> bool:
        """Drop what is over; whether anything was."""
        left = tuple(rule for rule in self.rules if not _is_over(rule, wall_ms))
        if len(left) == len(self.rules):
            return False
        self.replace(left, self.peers)
        return True

    def next_end_ms(self) -> int | None:
        """When the next rule ends by itself, by the wall clock."""
        return min(
            (rule.until_ms for rule in self.rules if rule.until_ms is not None), default=None
        )

    # Who is who.

    def node_at(self, host: str, port: int) -> int | None:
        return self.peers.get(address_key(host, port))

    def host_of(self, client_id: str | None) -> Host:
        """Who calls: a node that we know by its number, anyone else by its client id."""
        name = client_id or ""
        number = name.removeprefix(NODE_CLIENT)
        if number != name and number.isdecimal():
            node_id = int(number)
            if node_id == self.node_id or node_id in self.peers.values():
                return node_id
        return name

    # What happens on a way.

    def is_cut(self, way: LinkDirection) -> bool:
        """Nothing gets through: no frame, no connect, and no news that the other side closed."""
        return any(rule.what == "cut" for rule in self._on(way))

    def is_held(self, way: LinkDirection) -> bool:
        """Frames are kept back, everything else gets through."""
        return any(rule.what == "hold" for rule in self._on(way))

    def is_slow(self, way: LinkDirection) -> bool:
        """Something may come late: it has to go through the queue."""
        return any(rule.what in ("delay", "drop") for rule in self._on(way))

    def delay_ms(self, way: LinkDirection) -> int:
        """For one frame: all delays on its way, each with a throw of its jitter."""
        total_ms = 0
        for rule in self._on(way):
            if rule.what == "delay":
                self.counts[rule.id] += 1
                total_ms += rule.delay_ms
                if rule.jitter_ms:
                    total_ms += self._random.randint(0, rule.jitter_ms)
        return total_ms

    def delay_ms_max(self, way: LinkDirection) -> int:
        return sum(rule.delay_ms + rule.jitter_ms for rule in self._on(way) if rule.what == "delay")

    def is_lost(self, way: LinkDirection) -> bool:
        """A throw of the dice for each dropping rule: the frame has to be sent again."""
        is_lost = False
        for rule in self._on(way):
            if rule.what == "drop" and self._random.random() < rule.chance:
                self.counts[rule.id] += 1
                is_lost = True
        return is_lost

    def count_waiting(self, way: LinkDirection) -> None:
        """One more frame waits because of cuts and holds."""
        for rule in self._on(way):
            if rule.what in ("cut", "hold"):
                self.counts[rule.id] += 1

    # Other faults.

    @property
    def has_errors(self) -> bool:
        return any(rule.what == "error" for rule in self.rules)

    def error_rules(self, source: Host, api_key: int) -> list[FaultRule]:
        """Those that wait for such a request."""
        return [
            rule
            for rule in self.rules
            if rule.what == "error"
            and api_keys()[rule.api] == api_key
            and matches(rule.target, self.node_id)
            and matches(rule.source, source)
        ]

    def is_refused_by(self, rule: FaultRule) -> bool:
        """A request came that this rule waits for: whether it is one of those to be refused."""
        seen = self._seen[rule.id] = self._seen.get(rule.id, 0) + 1
        is_refused = rule.nth <= seen < rule.nth + rule.times
        self.counts[rule.id] += is_refused
        return is_refused

    def injected_errors(self, rules: Iterable[FaultRule]) -> dict[str, int]:
        """Of those of these rules that are in the table: how many errors each has given."""
        kept = set(self.rules) & set(rules)
        return {rule.id: self.counts[rule.id] for rule in kept if rule.what == "error"}

    def held_replicas(self) -> frozenset[tuple[int, TopicPartition]]:
        """Which replicas shall get nothing of which partitions."""
        return frozenset(
            (rule.replica, TopicPartition(rule.topic, rule.partition))
            for rule in self.rules
            if rule.what == "hold-replica"
        )

    def _on(self, way: LinkDirection) -> Iterable[FaultRule]:
        source, target, purpose = way
        if source == target and source is not None:
            return ()
        return [
            rule
            for rule in self.rules
            if rule.what in BETWEEN_HOSTS
            and (rule.purpose is None or rule.purpose == purpose)
            and matches(rule.source, source)
            and matches(rule.target, target)
        ]


def matches(pattern: Host, host: Host | None) -> bool:
    """Returns whether a rule's host means this one; only "*" means an unknown host."""
    if pattern == ANYONE:
        return True
    if isinstance(pattern, int):
        return type(host) is int and host == pattern
    if not isinstance(host, str):
        return False
    return pattern == CLIENTS or pattern == f"{ONE_CLIENT}{host}"


def _is_over(rule: FaultRule, wall_ms: int) -> bool:
    return rule.until_ms is not None and rule.until_ms <= wall_ms
