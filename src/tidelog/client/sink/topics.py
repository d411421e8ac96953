"""The partitions that a sink may write: all those of its topics, as they are now."""

from __future__ import annotations

from collections.abc import Sequence

from tidelog.client.sink.conversation import Steps, asked, paused
from tidelog.client.sink.errors import SinkRefused
from tidelog.client.sink.requests import ask_topics
from tidelog.client.sink.telling import must
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_03_metadata import MetadataResponse

UNKNOWN_FOR_MS = 5_000
"""A topic that was just created may be unknown to some broker for so long."""
PAUSE_MS = 100


def partitions_of(topics: Sequence[str]) -> Steps[list[TopicPartition]]:
    """SinkRefused if one of the topics does not exist."""
    first_ms: int | None = None
    while True:
        told = yield from asked(ask_topics(topics))
        if told.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
            answer = must(told)
            assert isinstance(answer, MetadataResponse)
            return [
                TopicPartition(str(topic.name), each.partition_index)
                for topic in answer.topics
                for each in sorted(topic.partitions, key=lambda each: each.partition_index)
            ]
        first_ms = told.now_ms if first_ms is None else first_ms
        if told.now_ms - first_ms >= UNKNOWN_FOR_MS:
            assert isinstance(told.answer, MetadataResponse)
            unknown = [str(topic.name) for topic in told.answer.topics if topic.error_code]
            raise SinkRefused(
                f"topic {', '.join(unknown)} does not exist: the sink creates no topics"
            )
        yield from paused(told.now_ms + PAUSE_MS)
