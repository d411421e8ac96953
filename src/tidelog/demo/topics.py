"""The demo's topics: create, read to the end, and delete them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tidelog.client.admin.topics import create_topic, delete_topic, describe_topic
from tidelog.client.consumer.fetched_records import ConsumerRecord
from tidelog.client.shells.blocking_clients import Admin, Consumer, RequestFailed
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.demo.errors import WITHIN_S, DemoFailed, wait_until

_POLL_S = 0.1


def create_topics(
    servers: str, topics: Mapping[str, int], *, replicas: int, configs: Mapping[str, str]
) -> None:
    """Create these topics, given by name with their number of partitions."""
    with Admin({"bootstrap.servers": servers}) as admin:
        for name, partitions in topics.items():
            request = create_topic(
                name, partitions=partitions, replication_factor=replicas, configs=configs
            )
            result = admin.ask(request, timeout_s=WITHIN_S)
            if result.error != ErrorCode.NONE:
                reason = f"{result.error.name} {result.message or ''}".strip()
                raise DemoFailed(f"topic {name} could not be created: {reason}")


def delete_topics(servers: str, topics: Iterable[str], *, timeout_s: float) -> list[str]:
    """Delete these topics; returns those that could not be deleted."""
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


def read_committed(servers: str, topic: str) -> list[ConsumerRecord]:
    """All committed records up to the end of every partition."""
    with Admin({"bootstrap.servers": servers}) as admin:
        description = admin.ask(describe_topic(topic), timeout_s=WITHIN_S)
    partitions = [TopicPartition(topic, index) for index in sorted(description.partitions)]
    settings = {
        "bootstrap.servers": servers,
        "auto.offset.reset": "earliest",
        "isolation.level": "read_committed",
    }
    found: list[ConsumerRecord] = []
    with Consumer(settings) as consumer:
        ends = consumer.end_offsets(partitions)
        consumer.assign(partitions)

        def is_read() -> bool:
            """Markers of transactions are passed without a record being given."""
            found.extend(consumer.poll(_POLL_S))
            return all(consumer.position(each) >= ends[each] for each in partitions)

        wait_until(is_read, f"the end of {topic}")
    return found


def end_offsets(servers: str, topic: str) -> dict[int, int]:
    """The end offset of each partition now."""
    with Admin({"bootstrap.servers": servers}) as admin:
        description = admin.ask(describe_topic(topic), timeout_s=WITHIN_S)
    partitions = [TopicPartition(topic, index) for index in description.partitions]
    with Consumer({"bootstrap.servers": servers}) as consumer:
        ends = consumer.end_offsets(partitions)
    return {partition.index: end for partition, end in ends.items()}
