"""Tidelog: a replicated commit log that speaks Apache Kafka's wire protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tidelog.cluster.cluster import Cluster as Cluster
    from tidelog.cluster.errors import ClusterError as ClusterError
    from tidelog.cluster.errors import WaitTimeout as WaitTimeout

__version__ = "0.1.0"
__all__ = ["Cluster", "ClusterError", "WaitTimeout", "__version__"]

_LAZY = {
    "Cluster": "tidelog.cluster.cluster",
    "ClusterError": "tidelog.cluster.errors",
    "WaitTimeout": "tidelog.cluster.errors",
}
"""A broker starts without loading what starts brokers, so these are imported when first used."""


def __getattr__(name: str) -> object:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_LAZY[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
