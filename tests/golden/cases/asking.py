"""The usual requests in few words: one topic, one partition, by name or by id as versions want."""

from __future__ import annotations

from typing import Any

from tests.golden.talk import Talk, Topic, produce_fields

PRODUCE_BY_ID_FROM = 13
FETCH_BY_ID_FROM = 13
FETCH_SESSIONS_FROM = 7
NO_EPOCH = -1
MEBIBYTE = 1024 * 1024


def produce(
    talk: Talk,
    version: int,
    topic: Topic,
    records: bytes | None,
    *,
    partition: int = 0,
    **options: Any,
) -> Any:
    """Produce to one partition of a topic."""
    return talk.ask("Produce", version, **producing(version, topic, records, partition, **options))


def producing(
    version: int, topic: Topic, records: bytes | None, partition: int = 0, **options: Any
) -> dict[str, Any]:
    """The fields of such a request."""
    fields = produce_fields(topic.name, records, partition, **options)
    if version >= PRODUCE_BY_ID_FROM:
        fields["topic_data"][0] = {
            "topic_id": topic.id,
            "partition_data": fields["topic_data"][0]["partition_data"],
        }
    return fields


def fetch(talk: Talk, version: int, topic: Topic, offset: int = 0, **options: Any) -> Any:
    """Fetch from one partition of a topic."""
    return talk.ask("Fetch", version, **fetching(version, topic, offset, **options))


def fetching(
    version: int,
    topic: Topic,
    offset: int = 0,
    *,
    partition: int = 0,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    partition_max_bytes: int = MEBIBYTE,
    request: dict[str, Any] | None = None,
    **options: Any,
) -> dict[str, Any]:
    """The fields of such a request; `request` adds to its top, other options to its partition."""
    asked = {
        "partition": partition,
        "fetch_offset": offset,
        "partition_max_bytes": partition_max_bytes,
        **options,
    }
    return {
        "max_wait_ms": max_wait_ms,
        "min_bytes": min_bytes,
        "topics": [fetched_topic(version, topic, [asked])],
        **(request or {}),
    }


def fetched_topic(version: int, topic: Topic, partitions: list[Any]) -> dict[str, Any]:
    """A topic in Fetch: by name below version 13, by id from then on."""
    if version >= FETCH_BY_ID_FROM:
        return {"topic_id": topic.id, "partitions": partitions}
    return {"topic": topic.name, "partitions": partitions}


def list_offsets(
    talk: Talk,
    version: int,
    topic: str,
    timestamp: int,
    *,
    partition: int = 0,
    request: dict[str, Any] | None = None,
    **options: Any,
) -> Any:
    """ListOffsets of one partition."""
    asked = {"partition_index": partition, "timestamp": timestamp, **options}
    topics = [{"name": topic, "partitions": [asked]}]
    return talk.ask(
        "ListOffsets", version, **{"replica_id": -1, "topics": topics, **(request or {})}
    )
