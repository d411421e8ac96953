"""A broker's settings as a whole: what a file may say, and whether its values fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from tidelog.core.model.accepted_settings import ACCEPTED, REPLICATION_THROTTLES
from tidelog.core.model.broker_settings import ACTED_ON
from tidelog.core.model.config import BadSetting, Update, Value, table
from tidelog.core.model.listeners import (
    PLAINTEXT,
    Listener,
    parse_listeners,
    parse_protocols,
    refuse_protocols,
    refuse_same_ports,
)
from tidelog.core.model.voters import parse_voters, refuse_voters

BROKER_SETTINGS = table(ACTED_ON + ACCEPTED)
_DYNAMIC_SETTINGS = {**BROKER_SETTINGS, **table(REPLICATION_THROTTLES)}
assert len(BROKER_SETTINGS) == len(ACTED_ON) + len(ACCEPTED), "a setting is there twice"


class Problem(NamedTuple):
    """What is wrong with a broker's settings, at which name."""

    name: str
    reason: str


def read_broker_settings(
    texts: Mapping[str, str],
) -> tuple[dict[str, Value], list[Problem]]:
    """All values, defaults included, and every reason not to start with them."""
    values = {name: setting.default for name, setting in BROKER_SETTINGS.items()}
    problems = []
    for name, text in with_both_ids(texts).items():
        setting = BROKER_SETTINGS.get(name)
        if setting is None:
            problems.append(Problem(name, _unknown(name)))
            continue
        try:
            values[name] = setting.parse(text)
        except BadSetting as refusal:
            shown = "[hidden]" if setting.is_secret else repr(text)
            problems.append(Problem(name, f"{shown} is refused: {refusal.reason}"))
    if not problems:
        problems = [problem for rule in _TOGETHER for problem in rule(values)]
    return values, problems


def with_both_ids(texts: Mapping[str, str]) -> dict[str, str]:
    """node.id and its older name broker.id stand for each other."""
    both = dict(texts)
    if "node.id" in both:
        both.setdefault("broker.id", both["node.id"])
    elif "broker.id" in both:
        both["node.id"] = both["broker.id"]
    return both


def listeners_of(values: Mapping[str, Value]) -> tuple[Listener, ...]:
    """Where to listen."""
    return parse_listeners("listeners", _items(values, "listeners"))


def advertised_listeners_of(values: Mapping[str, Value]) -> tuple[Listener, ...]:
    """What clients connect to; without an own setting, where the broker listens."""
    items = values["advertised.listeners"]
    if items is None:
        return listeners_of(values)
    return parse_listeners("advertised.listeners", _items(values, "advertised.listeners"))


def log_directories_of(values: Mapping[str, Value]) -> tuple[str, ...]:
    name = "log.dir" if values["log.dirs"] is None else "log.dirs"
    return _items(values, name)


def refuse_dynamic_change(settings: Mapping[str, str], *, for_one_broker: bool) -> str | None:
    """Why a running broker (or all of them) cannot be given exactly these settings."""
    fixed = sorted(
        name
        for name in settings
        if name in BROKER_SETTINGS and BROKER_SETTINGS[name].update == Update.READ_ONLY
    )
    if fixed:
        return f"cannot change while a broker runs: {', '.join(fixed)}"
    for name, text in sorted(settings.items()):
        setting = _DYNAMIC_SETTINGS.get(name)
        if setting is None:
            continue  # as in Kafka, where extensions may bring settings of their own
        try:
            setting.parse(text)
        except BadSetting as refusal:
            return str(refusal)
        if setting.update == Update.PER_BROKER and not for_one_broker:
            return f"{name} can be set for one broker, not for all of them"
    return None


def _unknown(name: str) -> str:
    from difflib import get_close_matches

    similar = get_close_matches(name, BROKER_SETTINGS, n=1)
    hint = f"; did you mean {similar[0]}?" if similar else ""
    return f"there is no such setting{hint}"


def _identity(values: Mapping[str, Value]) -> Iterator[Problem]:
    node_id = values["node.id"]
    if node_id is None:
        yield Problem("node.id", "must be set: the number of this node, unique in its cluster")
    elif values["broker.id"] not in (node_id, -1):
        yield Problem("broker.id", f"disagrees with node.id={node_id}")
    roles = _items(values, "process.roles")
    voters = _items(values, "controller.quorum.voters")
    reason = refuse_voters(voters)
    if reason is not None:
        yield Problem("controller.quorum.voters", reason)
        return
    ids = [voter.node_id for voter in parse_voters(voters)]
    if ids and "controller" in roles and node_id not in ids:
        yield Problem("controller.quorum.voters", f"this node, {node_id}, is not among them")
    if "controller" not in roles:
        if not ids:
            yield Problem("controller.quorum.voters", "a node that is no controller needs some")
        elif node_id in ids:
            yield Problem("process.roles", f"node {node_id} is a voter, so it must be a controller")


def _secret(values: Mapping[str, Value]) -> Iterator[Problem]:
    """Whoever has other nodes to speak with must know them apart from strangers."""
    items = _items(values, "controller.quorum.voters")
    voters = parse_voters(items) if refuse_voters(items) is None else ()
    has_others = any(voter.node_id != values["node.id"] for voter in voters)
    if has_others and values["tidelog.cluster.secret"] is None:
        yield Problem(
            "tidelog.cluster.secret",
            "must be set, here or in the file that tidelog.cluster.secret.file names, to the same "
            "random text on every node of the cluster (`openssl rand -hex 32` makes one)",
        )


def _addresses(values: Mapping[str, Value]) -> Iterator[Problem]:
    try:
        listeners = listeners_of(values)
        advertised = advertised_listeners_of(values)
        protocols = _protocols(values)
    except BadSetting as refusal:
        yield Problem(refusal.name, f"{refusal.text!r} is refused: {refusal.reason}")
        return
    reason = refuse_same_ports(listeners) or refuse_protocols(listeners, protocols)
    if reason is not None:
        yield Problem("listeners", reason)
    for listener in advertised:
        if listener.name not in [each.name for each in listeners]:
            yield Problem("advertised.listeners", f"{listener.name} is not among the listeners")
        elif listener.host == "0.0.0.0":
            yield Problem("advertised.listeners", "0.0.0.0 is no address that a client can reach")


def _protocols(values: Mapping[str, Value]) -> dict[str, str]:
    """The map, and PLAINTEXT for controller listeners that it leaves out."""
    text = values["listener.security.protocol.map"]
    assert isinstance(text, str)
    protocols = parse_protocols("listener.security.protocol.map", text)
    for name in _items(values, "controller.listener.names"):
        protocols.setdefault(name.upper(), PLAINTEXT)
    return protocols


def _limits(values: Mapping[str, Value]) -> Iterator[Problem]:
    wait_ms = _number(values, "replica.fetch.wait.max.ms")
    for other in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
        if wait_ms > _number(values, other):
            yield Problem("replica.fetch.wait.max.ms", f"is above {other}")
    interval_ms = _number(values, "broker.heartbeat.interval.ms")
    if 2 * interval_ms > _number(values, "broker.session.timeout.ms"):
        yield Problem("broker.heartbeat.interval.ms", "is above half of broker.session.timeout.ms")
    queued = _number(values, "queued.max.request.bytes")
    if 0 < queued < _number(values, "socket.request.max.bytes"):
        yield Problem("queued.max.request.bytes", "is below socket.request.max.bytes")
    if values["max.connections.per.ip"] == 0 and not values["max.connections.per.ip.overrides"]:
        yield Problem("max.connections.per.ip", "0 is allowed only with ...per.ip.overrides")
    lag_min_ms = _number(values, "log.cleaner.min.compaction.lag.ms")
    if lag_min_ms > _number(values, "log.cleaner.max.compaction.lag.ms"):
        yield Problem("log.cleaner.min.compaction.lag.ms", "is above the maximal lag")


_TOGETHER: tuple[Callable[[Mapping[str, Value]], Iterator[Problem]], ...] = (
    _identity,
    _secret,
    _addresses,
    _limits,
)


def _items(values: Mapping[str, Value], name: str) -> tuple[str, ...]:
    value = values[name]
    if value is None:
        return ()
    assert isinstance(value, tuple), name
    return value


def _number(values: Mapping[str, Value], name: str) -> int:
    value = values[name]
    assert isinstance(value, int), name
    return value
