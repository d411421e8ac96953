"""Fault rules: what one of them says, read from JSON with a clear line for every mistake.

A host is a node's id, "clients" (everyone who is not a node), "client:NAME" for one client id, or
"*". Each kind of rule has fields of its own; what does not belong to its kind is refused rather
than ignored, since a fault that was mistyped is a test that proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages import MESSAGES

Host = int | str
ANYONE = "*"
CLIENTS = "clients"
ONE_CLIENT = "client:"
PURPOSES = ("replica", "quorum", "controller", "probe")


class BadRule(Exception):
    """One clear line for whoever sent the rule."""


class Rule(NamedTuple):
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
        fields = [name for name in KINDS[self.what] if name not in _TOLD_BY_TEXT]
        words += [
            f"{name}={value}" for name in fields if (value := getattr(self, name)) is not None
        ]
        return " ".join(words)


_TOLD_BY_TEXT = ("from", "to", "replica", "topic", "partition")


def _host(value: object) -> Host:
    if type(value) is int and value >= 0:
        return value
    if isinstance(value, str):
        is_client = value.startswith(ONE_CLIENT) and len(value) > len(ONE_CLIENT)
        if value in (ANYONE, CLIENTS) or is_client:
            return value
    raise BadRule(f'is not a node id, "{CLIENTS}", "{ONE_CLIENT}NAME" or "{ANYONE}"')


def _purpose(value: object) -> str | None:
    if value is None or value in PURPOSES:
        return value
    raise BadRule(f"is not null or one of {', '.join(PURPOSES)}")


def _one_purpose(value: object) -> str | None:
    if value is None:
        raise BadRule(f"must be one of {', '.join(PURPOSES)}: without one it would be a cut")
    return _purpose(value)


def _whole_number(least: int) -> Callable[[object], int]:
    def read(value: object) -> int:
        if type(value) is not int or value < least:
            raise BadRule(f"is not a whole number from {least} on")
        return value

    return read


def _chance(value: object) -> float:
    if type(value) not in (int, float) or not 0 < value <= 1:  # type: ignore[operator]
        raise BadRule("is not a chance above 0 and up to 1")
    return float(value)  # type: ignore[arg-type]


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise BadRule("is not a text of one letter or more")
    return value


def _until(value: object) -> int | None:
    return None if value is None else _whole_number(0)(value)


@cache
def api_keys() -> Mapping[str, int]:
    """Every API that a broker serves, by name; asked only for rules that name one."""
    return {pair[0].__name__.removesuffix("Request"): key for key, pair in MESSAGES.items()}


def _api(value: object) -> str:
    if isinstance(value, str) and value in api_keys():
        return value
    raise BadRule(f"is not an API that this broker serves{near(str(value), api_keys())}")


def _error(value: object) -> str:
    names = [code.name for code in ErrorCode if code]
    if isinstance(value, str) and value in names:
        return value
    raise BadRule(f"is not the name of a Kafka error{near(str(value), names)}")


_REQUIRED = object()
Fields = Mapping[str, tuple[Callable[[object], Any], object]]

_WAY: Fields = {"from": (_host, _REQUIRED), "to": (_host, _REQUIRED), "purpose": (_purpose, None)}
_UNTIL: Fields = {"until_ms": (_until, None)}
KINDS: Mapping[str, Fields] = {
    "cut": {**_WAY, **_UNTIL},
    "delay": {
        **_WAY,
        "delay_ms": (_whole_number(0), _REQUIRED),
        "jitter_ms": (_whole_number(0), 0),
        **_UNTIL,
    },
    "drop": {**_WAY, "chance": (_chance, _REQUIRED), **_UNTIL},
    "hold": {**_WAY, "purpose": (_one_purpose, _REQUIRED), **_UNTIL},
    "hold-replica": {
        "replica": (_whole_number(0), _REQUIRED),
        "topic": (_text, _REQUIRED),
        "partition": (_whole_number(0), _REQUIRED),
        **_UNTIL,
    },
    "error": {
        "from": (_host, ANYONE),
        "to": (_host, ANYONE),
        "api": (_api, _REQUIRED),
        "error": (_error, _REQUIRED),
        "nth": (_whole_number(1), 1),
        "times": (_whole_number(1), 1),
        **_UNTIL,
    },
}
"""By kind: its fields beside id and what, each with its reader and its default."""
_ATTRIBUTES = {"from": "source", "to": "target"}
_EVERY_FIELD = frozenset(name for fields in KINDS.values() for name in fields)


def near(given: str, known: Iterable[str]) -> str:
    """ "; did you mean ...?" with names like the given one, or all of them if there are few."""
    known = list(known)
    by_lower = {name.lower(): name for name in known}
    found = [by_lower[name] for name in get_close_matches(given.lower(), by_lower, n=4, cutoff=0.5)]
    if found:
        return f"; did you mean {', '.join(found)}?"
    return f"; it is one of {', '.join(known)}" if len(known) <= 12 else ""


def read_rules(values: object) -> tuple[Rule, ...]:
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


def read_rule(value: object, number: int = 1) -> Rule:
    """One rule; `number` names it in complaints as long as it has no id."""
    if not isinstance(value, dict):
        raise BadRule(f"rule number {number} is not an object")
    rule_id = value.get("id")
    if not isinstance(rule_id, str) or not rule_id:
        raise BadRule(f'rule number {number}: "id" is missing or not a text')
    what = value.get("what")
    if not isinstance(what, str) or what not in KINDS:
        raise BadRule(f"rule {rule_id!r}: {what!r} is not a kind of fault{near(str(what), KINDS)}")
    fields = KINDS[what]
    for name, given in value.items():
        if name in fields or name in ("id", "what"):
            continue
        if name in _EVERY_FIELD and given is None:
            continue  # whoever sends all fields sends null for what is not there
        raise BadRule(f"rule {rule_id!r}: {what} has no field {name!r}{near(name, fields)}")
    read = {}
    for name, (reader, default) in fields.items():
        given = value.get(name, default)
        if given is _REQUIRED:
            raise BadRule(f"rule {rule_id!r}: {what} needs the field {name!r}")
        try:
            read[_ATTRIBUTES.get(name, name)] = reader(given)
        except BadRule as reason:
            raise BadRule(f"rule {rule_id!r}: {name} {given!r} {reason}") from None
    return Rule(id=rule_id, what=what, **read)


def rule_value(rule: Rule) -> dict[str, object]:
    """As JSON: the fields of its kind."""
    fields = {name: getattr(rule, _ATTRIBUTES.get(name, name)) for name in KINDS[rule.what]}
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
