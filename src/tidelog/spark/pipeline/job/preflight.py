"""Before Spark takes its seconds to start: every cluster that a plan names must be there, with the
topics that are read, and with transactions where topics are written."""

from __future__ import annotations

from tidelog.client.shells.blocking_clients import Admin, RequestFailed
from tidelog.client.shells.connectivity import ANSWER_TIMEOUT_S, unfit_for_sinks, unreachable
from tidelog.client.shells.topic_descriptions import describe_by_any_broker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.exceptions import TidelogError
from tidelog.spark.pipeline.file.plan import PipelinePlan, SourceSpec, TopicTarget

Wanted = dict[str, list[str]]
"""Keys of the plan, by the brokers that they need."""


class PreflightFailed(TidelogError):
    """A cluster is not there, or lacks what is asked of it; one line, with the keys that ask."""


def check_clusters(plan: PipelinePlan, servers: str) -> None:
    """`servers` are those of whatever names none of its own."""
    written = written_clusters(plan, servers)
    for each, keys in wanted_clusters(plan, servers).items():
        settings = {"bootstrap.servers": each}
        if trouble := unreachable(settings):
            raise PreflightFailed(f"{', '.join(keys)}: {trouble}")
        if each in written and (trouble := unfit_for_sinks(settings)):
            raise PreflightFailed(f"{', '.join(written[each])}: {trouble}")
    for source in plan.sources:
        _find_topics(source, source.bootstrap or servers)


def wanted_clusters(plan: PipelinePlan, servers: str) -> Wanted:
    """Of sources and of sinks."""
    wanted: Wanted = {}
    for source in plan.sources:
        wanted.setdefault(source.bootstrap or servers, []).append(f"sources.{source.name}")
    for each, keys in written_clusters(plan, servers).items():
        wanted.setdefault(each, []).extend(keys)
    return wanted


def written_clusters(plan: PipelinePlan, servers: str) -> Wanted:
    """Of sinks that are topics."""
    places = [(f"sinks.{sink.name}", sink.target) for sink in plan.sinks]
    if plan.dead_letters is not None:
        places.append(("dead_letters", plan.dead_letters))
    written: Wanted = {}
    for key, target in places:
        if isinstance(target, TopicTarget):
            written.setdefault(target.bootstrap or servers, []).append(key)
    return written


def _find_topics(source: SourceSpec, servers: str) -> None:
    """Of our own source; what nobody tells is left to it."""
    if source.connector != "tidelog" or not source.topics:
        return
    with Admin({"bootstrap.servers": servers}) as admin:
        try:
            seen = describe_by_any_broker(admin, source.topics, timeout_s=ANSWER_TIMEOUT_S).topics
        except RequestFailed:
            return
    missing = [
        name
        for name in source.topics
        if name in seen and seen[name].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    if missing:
        told = f"there is no topic {', '.join(missing)}"
        hint = f"`tidelog topic create {missing[0]}` makes one"
        raise PreflightFailed(f"sources.{source.name}: {told} at {servers}; {hint}")
