"""Is anybody there? Answered before something slow is begun for brokers that do not run.

A client goes on trying, since brokers come back. A program that takes its time to start should not
start for addresses that refuse at once, or that nobody has.
"""

from __future__ import annotations

import socket

from tidelog.client.config import client_config
from tidelog.client.settings import Given

CONNECT_TIMEOUT_S = 10.0


def unreachable(settings: Given, *, timeout_s: float = CONNECT_TIMEOUT_S) -> str | None:
    """One line if none of `bootstrap.servers` takes a connection; None if one does."""
    reasons = []
    for address in client_config(settings).bootstrap:
        try:
            socket.create_connection(address, timeout=timeout_s).close()
        except OSError as error:
            reasons.append(f"{address} ({_reason(error)})")
        else:
            return None
    return f"no broker can be reached: {', '.join(reasons)}"


def _reason(error: OSError) -> str:
    if isinstance(error, TimeoutError):
        return "no answer"
    if isinstance(error, socket.gaierror):
        return "no such host"
    return (error.strerror or str(error)).lower()
