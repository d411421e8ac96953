"""Where a broker listens and what it advertises, read from Kafka's NAME://host:port form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tidelog.core.model.config import BadSetting

PLAINTEXT = "PLAINTEXT"
SECURITY_PROTOCOLS = (PLAINTEXT, "SSL", "SASL_PLAINTEXT", "SASL_SSL")
PORT_MAX = 65_535

_LISTENER = re.compile(r"([^:/]+)://\[?([0-9a-zA-Z\-%._:]*)\]?:([0-9]+)")


class Listener(NamedTuple):
    """One door. No host means every address of the machine; port 0 means any free one."""

    name: str
    host: str
    port: int

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_listeners(setting: str, items: Iterable[str]) -> tuple[Listener, ...]:
    """The listeners of a setting; BadSetting for a form, name or port that cannot be."""
    listeners = tuple(_parse(setting, item) for item in items)
    names = [listener.name for listener in listeners]
    if len(set(names)) != len(names):
        raise BadSetting(setting, ",".join(map(str, listeners)), "two listeners have one name")
    return listeners


def refuse_same_ports(listeners: Iterable[Listener]) -> str | None:
    """Why these cannot all be listened on; an IPv4 and an IPv6 address may share a port."""
    taken: dict[tuple[int, bool], Listener] = {}
    for listener in listeners:
        key = (listener.port, ":" in listener.host)
        if listener.port != 0 and key in taken:
            return f"{taken[key]} and {listener} have the same port"
        taken[key] = listener
    return None


def refuse_protocols(listeners: Iterable[Listener], protocols: Mapping[str, str]) -> str | None:
    """Why one of these cannot be served: so far Tidelog serves only PLAINTEXT."""
    for listener in listeners:
        protocol = protocols.get(listener.name)
        if protocol is None:
            return f"listener.security.protocol.map does not say what {listener.name} speaks"
        if protocol != PLAINTEXT:
            return f"{listener} would use {protocol}; only {PLAINTEXT} is served"
    return None


def parse_protocols(setting: str, text: str) -> dict[str, str]:
    """Listener name to security protocol, from NAME:PROTOCOL,NAME:PROTOCOL."""
    protocols: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = item.partition(":")
        protocol = protocol.strip().upper()
        if not colon or protocol not in SECURITY_PROTOCOLS:
            allowed = ", ".join(SECURITY_PROTOCOLS)
            raise BadSetting(setting, text, f"{item!r} is not NAME:PROTOCOL with one of {allowed}")
        if name.strip().upper() in protocols:
            raise BadSetting(setting, text, f"{name} is there twice")
        protocols[name.strip().upper()] = protocol
    return protocols


def _parse(setting: str, item: str) -> Listener:
    found = _LISTENER.fullmatch(item)
    if found is None:
        raise BadSetting(setting, item, "must be like PLAINTEXT://host:9092")
    port = int(found[3]) if len(found[3]) < 6 else PORT_MAX + 1
    if port > PORT_MAX:
        raise BadSetting(setting, item, f"a port is at most {PORT_MAX}")
    return Listener(found[1].upper(), found[2], port)
