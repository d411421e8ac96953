"""Checks before Spark takes its seconds to start: every cluster that a plan names must answer, with
the topics that are read, and with transactions where topics are written."""

from __future__ import annotations

from tidelog.client.shells.blocking_clients import Admin, RequestFailed
from tidelog.client.shells.connectivity import ANSWER_TIMEOUT_S, unfit_for_sinks, unreachable
from tidelog.client.shells.topic_descriptions import describe_by_any_broker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.exceptions import TidelogError
from tidelog.spark.pipeline.file.plan import PipelinePlan, SourceSpec, TopicTarget

KeysByServers = dict[str, list[str]]
"""Keys of the plan, by the brokers that they need."""


class PreflightFailed(TidelogError):
    """A cluster does not answer, or lacks what the plan needs; one line, with the plan's keys."""


def check_clusters(plan: PipelinePlan, servers: str) -> None:
    """Check all clusters; `servers` are for sources and sinks without their own."""
    written = written_clusters(plan, servers)
    for each, keys in needed_clusters(plan, servers).items():
        settings = {"bootstrap.servers": each}
        if problem := unreachable(settings):
            raise PreflightFailed(f"{', '.join(keys)}: {problem}")
        if each in written and (problem := unfit_for_sinks(settings)):
            raise PreflightFailed(f"{', '.join(written[each])}: {problem}")
    for source in plan.sources:
        _find_topics(source, source.bootstrap or servers)


def needed_clusters(plan: PipelinePlan, servers: str) -> KeysByServers:
    """The clusters of sources and sinks."""
    needed: KeysByServers = {}
    for source in plan.sources:
        needed.setdefault(source.bootstrap or servers, []).append(f"sources.{source.name}")
    for each, keys in written_clusters(plan, servers).items():
        needed.setdefault(each, []).extend(keys)
    return needed


def written_clusters(plan: PipelinePlan, servers: str) -> KeysByServers:
    """The clusters of sinks that are topics."""
    targets = [(f"sinks.{sink.name}", sink.target) for sink in plan.sinks]
    if plan.dead_letters is not None:
        targets.append(("dead_letters", plan.dead_letters))
    written: KeysByServers = {}
    for key, target in targets:
        if isinstance(target, TopicTarget):
            written.setdefault(target.bootstrap or servers, []).append(key)
    return written


def _find_topics(source: SourceSpec, servers: str) -> None:
    """Only for our own source, which reports anything else that is wrong."""
    if source.connector != "tidelog" or not source.topics:
        return
    with Admin({"bootstrap.servers": servers}) as admin:
        try:
            topics = describe_by_any_broker(admin, source.topics, timeout_s=ANSWER_TIMEOUT_S).topics
        except RequestFailed:
            return
    missing = [
        name
        for name in source.topics
        if name in topics and topics[name].error == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    ]
    if missing:
        message = f"there is no topic {', '.join(missing)}"
        hint = f"`tidelog topic create {missing[0]}` makes one"
        raise PreflightFailed(f"sources.{source.name}: {message} at {servers}; {hint}")
