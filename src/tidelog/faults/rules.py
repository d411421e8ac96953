"""Rules of a fault gate: what one of them says, read from JSON with a clear line for every mistake.

Each kind of rule has fields of its own (kinds.py); what does not belong to its kind is refused
rather than ignored, since a fault that was mistyped is a test that proves nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from tidelog.faults.fields import REQUIRED, BadRule, suggestion
from tidelog.faults.hosts import ANYONE, Host
from tidelog.faults.kinds import RULE_FIELDS


class FaultRule(NamedTuple):
    """One fault; fields that its kind does not have keep their defaults."""

    id: str
    what: str
    source: Host = ANYONE
    """Called "from" in JSON."""
    target: Host = ANYONE
    """Called "to" in JSON."""
    purpose: str | None = None
    delay_ms: int = 0
    jitter_ms: int = 0
    chance: float = 0.0
    replica: int = 0
    topic: str = ""
    partition: int = 0
    api: str = ""
    error: str = ""
    nth: int = 1
    times: int = 1
    until_ms: int | None = None
    """Wall clock; it ends by itself then."""

    def __str__(self) -> str:
        """Short, for log lines: `cut 1->2`."""
        if self.what == "hold-replica":
            words = [f"hold-replica {self.replica} {self.topic}-{self.partition}"]
        else:
            words = [f"{self.what} {self.source}->{self.target}"]
        fields = [name for name in RULE_FIELDS[self.what] if name not in _IN_TEXT]
        words += [
            f"{name}={value}" for name in fields if (value := getattr(self, name)) is not None
        ]
        return " ".join(words)


_IN_TEXT = ("from", "to", "replica", "topic", "partition")
_ATTRIBUTES = {"from": "source", "to": "target"}
_EVERY_FIELD = frozenset(name for fields in RULE_FIELDS.values() for name in fields)


def read_rules(values: object) -> tuple[FaultRule, ...]:
    """A whole list; ids must differ."""
    if not isinstance(values, list):
        raise BadRule('"rules" is not a list')
    rules = tuple(read_rule(value, number) for number, value in enumerate(values, start=1))
    seen: set[str] = set()
    for rule in rules:
        if rule.id in seen:
            raise BadRule(f"two rules have the id {rule.id!r}")
        seen.add(rule.id)
    return rules


def read_rule(value: object, number: int = 1) -> FaultRule:
    """One rule; `number` names it in complaints as long as it has no id."""
    if not isinstance(value, dict):
        raise BadRule(f"rule number {number} is not an object")
    rule_id = value.get("id")
    if not isinstance(rule_id, str) or not rule_id:
        raise BadRule(f'rule number {number}: "id" is missing or not a text')
    what = value.get("what")
    if not isinstance(what, str) or what not in RULE_FIELDS:
        raise BadRule(
            f"rule {rule_id!r}: {what!r} is not a kind of fault{suggestion(str(what), RULE_FIELDS)}"
        )
    fields = RULE_FIELDS[what]
    for name, given in value.items():
        if name in fields or name in ("id", "what"):
            continue
        if name in _EVERY_FIELD and given is None:
            continue  # whoever sends all fields sends null for what is not there
        raise BadRule(f"rule {rule_id!r}: {what} has no field {name!r}{suggestion(name, fields)}")
    read = {}
    for name, (reader, default) in fields.items():
        given = value.get(name, default)
        if given is REQUIRED:
            raise BadRule(f"rule {rule_id!r}: {what} needs the field {name!r}")
        try:
            read[_ATTRIBUTES.get(name, name)] = reader(given)
        except BadRule as reason:
            raise BadRule(f"rule {rule_id!r}: {name} {given!r} {reason}") from None
    return FaultRule(id=rule_id, what=what, **read)


def rule_value(rule: FaultRule) -> dict[str, object]:
    """As JSON: the fields of its kind."""
    fields = {name: getattr(rule, _ATTRIBUTES.get(name, name)) for name in RULE_FIELDS[rule.what]}
    return {"id": rule.id, "what": rule.what, **fields}


def read_peers(value: object) -> dict[str, int]:
    """Node ids by address, from addresses by node id."""
    if not isinstance(value, dict):
        raise BadRule('"peers" is not an object')
    peers: dict[str, int] = {}
    for name, address in value.items():
        if not name.isdecimal():
            raise BadRule(f"peers: {name!r} is not a node id")
        host, colon, port = address.rpartition(":") if isinstance(address, str) else ("", "", "")
        if not (host and colon and port.isdecimal()):
            raise BadRule(f"peers: the address {address!r} of node {name} is not like host:port")
        peers[address_key(host, int(port))] = int(name)
    return peers


def address_key(host: str, port: int) -> str:
    """One text for one address, however it is written."""
    host = host.strip("[]").lower()
    return f"{'127.0.0.1' if host == 'localhost' else host}:{port}"
