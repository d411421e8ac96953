"""A Fetch request as a consumer writes it."""

from __future__ import annotations

from tidelog.client.consumer.config import ConsumerConfig
from tidelog.client.consumer.fetch_session import FetchSessionRequest
from tidelog.core.model.ids import ZERO_TOPIC_ID
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)


def fetch_request(config: ConsumerConfig, session: FetchSessionRequest) -> FetchRequest:
    """Partitions of one topic stand together."""
    topics: dict[str, FetchTopic] = {}
    for name, fetched in session.partitions.items():
        topic = topics.setdefault(
            name.topic, FetchTopic(topic=name.topic, topic_id=fetched.topic_id or ZERO_TOPIC_ID)
        )
        partition = FetchPartition(
            partition=name.index,
            fetch_offset=fetched.offset,
            partition_max_bytes=fetched.bytes_max,
        )
        if fetched.leader_epoch is not None:
            partition.current_leader_epoch = fetched.leader_epoch
        topic.partitions.append(partition)
    forgotten: dict[tuple[str, bytes | None], ForgottenTopic] = {}
    for name, topic_id in session.forgotten:
        topic_forgotten = forgotten.setdefault(
            (name.topic, topic_id),
            ForgottenTopic(topic=name.topic, topic_id=topic_id or ZERO_TOPIC_ID),
        )
        topic_forgotten.partitions.append(name.index)
    return FetchRequest(
        max_wait_ms=config.fetch_wait_ms,
        min_bytes=config.fetch_bytes_min,
        max_bytes=config.fetch_bytes_max,
        isolation_level=int(config.is_read_committed),
        session_id=session.session_id,
        session_epoch=session.session_number,
        topics=list(topics.values()),
        forgotten_topics_data=list(forgotten.values()),
        rack_id=config.client.client_rack,
    )
