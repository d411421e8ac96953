"""Ports for the servers of tests: those of local clusters, so that nobody is given one twice."""

from __future__ import annotations

from tidelog.cluster.layout import HOST
from tidelog.cluster.ports import free_ports

__all__ = ["HOST", "free_port"]


def free_port() -> int:
    """A port that nobody listens on, and that is given once only."""
    return free_ports(1)[0]
