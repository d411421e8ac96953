"""Incremental fetch sessions with small limits: nobody starves behind another partition."""

from __future__ import annotations

from tidelog.core.model.errors import ErrorCode
from tidelog.core.wire.messages.api_01_fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
)
from tidelog.worlds.simulator.single_broker import SingleBroker

VERSION = 13


def given(stage: SingleBroker, request: FetchRequest) -> tuple[int, list[int]]:
    """The session's id, and the partitions that gave records."""
    answer = stage.answer(request, VERSION)
    assert isinstance(answer, FetchResponse)
    assert answer.error_code == ErrorCode.NONE
    partitions = [part for topic in answer.responses for part in topic.partitions]
    return answer.session_id, [part.partition_index for part in partitions if part.records]


def test_a_batch_that_did_not_fit_comes_with_a_later_answer_although_nothing_moved() -> None:
    """The limit is smaller than any batch, so each answer has room for one partition only."""
    stage = SingleBroker()
    topic = stage.create_topic("orders", partitions=2)
    for index in (0, 1):
        stage.produce(topic, "first", index=index, size_bytes=200)

    wanted = [
        FetchPartition(partition=index, fetch_offset=0, partition_max_bytes=1) for index in (0, 1)
    ]
    topics = [FetchTopic(topic_id=topic.topic_id, partitions=wanted)]
    session_id, first = given(
        stage, FetchRequest(min_bytes=1, max_wait_ms=10, session_epoch=0, topics=topics)
    )
    moved = FetchPartition(partition=first[0], fetch_offset=1, partition_max_bytes=1)
    topics = [FetchTopic(topic_id=topic.topic_id, partitions=[moved])]
    _, second = given(
        stage,
        FetchRequest(
            min_bytes=1, max_wait_ms=10, session_id=session_id, session_epoch=1, topics=topics
        ),
    )

    assert sorted(first + second) == [0, 1]
