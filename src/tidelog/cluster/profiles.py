"""Timing profiles: how soon a cluster notices a death and a group begins, by Kafka's setting names.

`documents` has the figures of the documents, `kafka-4` Apache Kafka's defaults, `tidelog` (ours)
acts at once on a refused connection and starts groups at once, and `fast` is `documents` ten times
as fast, for real processes whose stories should not take minutes.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidelog.cluster.errors import ClusterUsageError

_INTERVALS = (
    "broker.heartbeat.interval.ms",
    "broker.session.timeout.ms",
    "replica.lag.time.max.ms",
    "group.initial.rebalance.delay.ms",
    "group.consumer.assignment.interval.ms",
)


def _profile(*intervals_ms: int, detection: str) -> dict[str, str]:
    values = dict(zip(_INTERVALS, map(str, intervals_ms), strict=True))
    return {**values, "tidelog.failure.detection": detection}


PROFILES: dict[str, dict[str, str]] = {
    "documents": _profile(3_000, 6_000, 10_000, 3_000, 1_000, detection="session"),
    "kafka-4": _profile(2_000, 9_000, 30_000, 3_000, 1_000, detection="session"),
    "tidelog": _profile(2_000, 9_000, 30_000, 0, 0, detection="connection"),
    "fast": _profile(300, 600, 1_000, 300, 100, detection="session"),
}
DEFAULT_PROFILE = "tidelog"


def profile_settings(name: str) -> Mapping[str, str]:
    """The settings of a profile."""
    try:
        return PROFILES[name]
    except KeyError:
        known = ", ".join(PROFILES)
        raise ClusterUsageError(f"there is no profile {name!r}; one of: {known}") from None
