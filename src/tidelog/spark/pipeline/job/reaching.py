"""Before Spark takes its seconds to start: every cluster that a plan names must be there."""

from __future__ import annotations

from tidelog.client.shells.knocking import unreachable
from tidelog.spark.pipeline.file.plan import Plan, TopicTarget


class Unreachable(Exception):
    """No broker of a cluster takes a connection; one line, with the keys that need it."""


def reach(plan: Plan, servers: str) -> None:
    """`servers` are those of whatever names none of its own."""
    for each, keys in wanted_clusters(plan, servers).items():
        trouble = unreachable({"bootstrap.servers": each})
        if trouble is not None:
            raise Unreachable(f"{', '.join(keys)}: {trouble}")


def wanted_clusters(plan: Plan, servers: str) -> dict[str, list[str]]:
    """Brokers, and the keys of the sources and sinks that need them."""
    wanted: dict[str, list[str]] = {}
    for source in plan.sources:
        wanted.setdefault(source.bootstrap or servers, []).append(f"sources.{source.name}")
    places = [(f"sinks.{sink.name}", sink.target) for sink in plan.sinks]
    if plan.dead_letters is not None:
        places.append(("dead_letters", plan.dead_letters))
    for key, target in places:
        if isinstance(target, TopicTarget):
            wanted.setdefault(target.bootstrap or servers, []).append(key)
    return wanted
