"""Topics of the demo: made at its beginning, and on somebody's cluster deleted at its end."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.client.admin.topics import create_topic, delete_topic
from tidelog.client.shells.blocking_clients import Admin, RequestFailed
from tidelog.core.model.errors import ErrorCode
from tidelog.demo.errors import WITHIN_S, DemoFailed


def make_topics(
    servers: str, topics: Mapping[str, int], *, replicas: int, configs: Mapping[str, str]
) -> None:
    """By name, with so many partitions each."""
    with Admin({"bootstrap.servers": servers}) as admin:
        for name, partitions in topics.items():
            question = create_topic(
                name, partitions=partitions, replication_factor=replicas, configs=configs
            )
            made = admin.ask(question, timeout_s=WITHIN_S)
            if made.error != ErrorCode.NONE:
                told = f"{made.error.name} {made.message or ''}".strip()
                raise DemoFailed(f"topic {name} could not be made: {told}")


def delete_topics(servers: str, topics: Iterable[str], *, timeout_s: float) -> list[str]:
    """Those that could not be deleted."""
    left = []
    with Admin({"bootstrap.servers": servers}) as admin:
        for name in topics:
            try:
                error = admin.ask(delete_topic(name), timeout_s=timeout_s).error
            except RequestFailed:
                left.append(name)
                continue
            if error not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
                left.append(name)
    return left
