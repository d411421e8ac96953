"""Tidelog: a replicated commit log that speaks Apache Kafka's wire protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.cluster.cluster import Cluster as Cluster
    from tidelog.cluster.errors import ClusterError as ClusterError

__version__ = "0.1.0"
__all__ = ["Cluster", "ClusterError", "__version__"]


def __getattr__(name: str) -> object:
    """A broker starts without loading what starts brokers."""
    if name == "Cluster":
        from tidelog.cluster.cluster import Cluster

        return Cluster
    if name == "ClusterError":
        from tidelog.cluster.errors import ClusterError

        return ClusterError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
