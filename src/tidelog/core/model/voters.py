"""The nodes that keep the metadata, read from Kafka's `id@host:port` form."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple


class Voter(NamedTuple):
    """One node of the metadata quorum and where it is reached."""

    node_id: int
    host: str
    port: int


def parse_voters(items: Iterable[str]) -> tuple[Voter, ...]:
    """The voters of a setting that was checked before, by id."""
    voters = []
    for item in items:
        voter_id, _, address = item.partition("@")
        host, _, port = address.rpartition(":")
        voters.append(Voter(int(voter_id), host.strip("[]"), int(port)))
    return tuple(sorted(voters))


def refuse_voters(items: Iterable[str]) -> str | None:
    """Why these cannot be the voters of a cluster."""
    ids = []
    for item in items:
        voter_id, at, address = item.partition("@")
        host, colon, port = address.rpartition(":")
        if not at or not voter_id.isdecimal() or not colon or not host or not port.isdecimal():
            return f"{item!r} is not like 1@host:9093"
        ids.append(int(voter_id))
    if len(set(ids)) != len(ids):
        return "a node id is there twice"
    return None
