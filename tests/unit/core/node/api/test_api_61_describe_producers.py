"""DescribeProducers: what a partition remembers of its producers."""

from __future__ import annotations

import pytest

from tests.unit.core.node.hosting import ELSEWHERE, TOPIC, HostingBroker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_61_describe_producers as api
from tidelog.core.wire.messages.api_61_describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicRequest,
)


def ask(node: HostingBroker, topic: str = TOPIC, index: int = 0) -> PartitionResponse:
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[index])])
    (answer,) = node.ask(api, request, DescribeProducersResponse, 0).topics
    (partition,) = answer.partitions
    assert (answer.name, partition.partition_index) == (topic, index)
    return partition


def test_without_producers_there_is_nothing_to_tell() -> None:
    node = HostingBroker()
    node.append(1)
    answer = ask(node)
    assert (answer.error_code, answer.active_producers) == (ErrorCode.NONE, [])


def test_each_producer_is_told_with_its_last_sequence() -> None:
    node = HostingBroker()
    node.append(10, producer_id=9, sequence=0)
    node.append(11, 12, 13, producer_id=4, sequence=0)
    node.append(20, producer_id=4, sequence=3)

    assert ask(node).active_producers == [
        ProducerState(
            producer_id=4,
            producer_epoch=0,
            last_sequence=3,
            last_timestamp=20,
            coordinator_epoch=-1,
            current_txn_start_offset=-1,
        ),
        ProducerState(
            producer_id=9,
            producer_epoch=0,
            last_sequence=0,
            last_timestamp=10,
            coordinator_epoch=-1,
            current_txn_start_offset=-1,
        ),
    ]


def test_a_sequence_before_the_wrap_is_told() -> None:
    node = HostingBroker()
    node.append(10, producer_id=9, sequence=2**31 - 1)
    (producer,) = ask(node).active_producers
    assert producer.last_sequence == 2**31 - 1


def test_an_open_transaction_is_told_with_its_start() -> None:
    node = HostingBroker()
    node.append(9)
    node.append(10, producer_id=9, sequence=0, transactional=True)
    (producer,) = ask(node).active_producers
    assert producer.current_txn_start_offset == 1


def test_a_follower_answers_too() -> None:
    node = HostingBroker()
    node.append(10, producer_id=9, sequence=0)
    node.stop_leading()
    assert len(ask(node).active_producers) == 1


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [
        ("no spaces", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("", 0, ErrorCode.INVALID_TOPIC_EXCEPTION),
        ("unheard-of", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ELSEWHERE, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_what_is_not_here_is_refused(topic: str, index: int, code: ErrorCode) -> None:
    answer = ask(HostingBroker(), topic, index)
    assert (answer.error_code, answer.active_producers) == (code, [])
