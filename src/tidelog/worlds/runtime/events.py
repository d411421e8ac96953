"""What a broker process itself has to tell: events of the shell, beside those of the core.

Named tuples, because each data class would cost a starting broker half a millisecond.
"""

from __future__ import annotations

from typing import NamedTuple


class ConnectionOpened(NamedTuple):
    connection: int
    peer: str


class ConnectionClosed(NamedTuple):
    connection: int
    peer: str
    reason: str


class ConnectionDropped(NamedTuple):
    """We closed it, because of something that the client did or did not do."""

    connection: int
    peer: str
    reason: str


class ConnectionRefused(NamedTuple):
    """A limit on connections was reached."""

    peer: str
    reason: str


class LinkOpened(NamedTuple):
    """A connection that we opened to another node."""

    link: int
    address: str
    purpose: str


class LinkClosed(NamedTuple):
    """It has ended, or never came about."""

    link: int
    address: str
    purpose: str
    reason: str


class SocketTrouble(NamedTuple):
    """The system refused something that no single connection is to blame for."""

    reason: str


class FaultsChanged(NamedTuple):
    """What happens to this broker's connections on purpose is different from now on."""

    because: str
    """"loaded", "replaced" or "expired"."""
    added: tuple[str, ...]
    removed: tuple[str, ...]
    rules: int
    """How many there are now."""


class BrokerReady(NamedTuple):
    """Clients may come."""

    node_id: int
    listeners: tuple[str, ...]
    """With the ports that were really bound."""
    advertised: tuple[str, ...]
    start_ms: int


class BrokerStopping(NamedTuple):
    node_id: int
    signal: str


class BrokerFailed(NamedTuple):
    """The process ends here, uncleanly."""

    node_id: int
    reason: str
