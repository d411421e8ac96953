"""OffsetForLeaderEpoch: where leader epochs end, as far as the leader's log knows."""

from __future__ import annotations

import pytest

from tests.unit.core.node.hosting import ELSEWHERE, TOPIC, HostingBroker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_23_offset_for_leader_epoch as api
from tidelog.core.wire.messages.api_23_offset_for_leader_epoch import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)

LAST = api.VERSIONS[-1]


def ask(
    node: HostingBroker,
    leader_epoch: int,
    *,
    version: int = LAST,
    topic: str = TOPIC,
    index: int = 0,
    current: int = -1,
) -> EpochEndOffset:
    question = OffsetForLeaderPartition(
        partition=index, current_leader_epoch=current, leader_epoch=leader_epoch
    )
    request = OffsetForLeaderEpochRequest(
        topics=[OffsetForLeaderTopic(topic=topic, partitions=[question])]
    )
    (answer,) = node.ask(api, request, OffsetForLeaderEpochResponse, version).topics
    assert answer.topic == topic
    (partition,) = answer.partitions
    assert partition.partition == index
    return partition


def fields(answer: EpochEndOffset) -> tuple[int, int, int]:
    return answer.error_code, answer.leader_epoch, answer.end_offset


@pytest.fixture
def node() -> HostingBroker:
    """Leader epoch 3 has [0, 2), 5 has [2, 5), and 8 leads now without a record."""
    node = HostingBroker()
    node.append(1, 2)
    node.lead(leader_epoch=5)
    node.append(3, 4, 5)
    node.lead(leader_epoch=8)
    return node


@pytest.mark.parametrize("version", api.VERSIONS)
@pytest.mark.parametrize(
    ("leader_epoch", "end"),
    [
        (-2, (-2, 0)),
        (-1, (-1, -1)),
        (0, (0, 0)),
        (2, (2, 0)),
        (3, (3, 2)),
        (4, (3, 2)),
        (5, (5, 5)),
        (6, (5, 5)),
        (8, (8, 5)),
        (9, (-1, -1)),
    ],
)
def test_an_epoch_ends_where_the_next_begins(
    node: HostingBroker, version: int, leader_epoch: int, end: tuple[int, int]
) -> None:
    assert fields(ask(node, leader_epoch, version=version)) == (0, *end)


def test_records_of_the_current_epoch_move_its_end(node: HostingBroker) -> None:
    node.append(6, committed=False)
    assert fields(ask(node, 8)) == (0, 8, 6)
    assert fields(ask(node, 7)) == (0, 5, 5)


def test_an_empty_log_knows_its_leaders_epoch() -> None:
    node = HostingBroker()
    assert fields(ask(node, 3)) == (0, 3, 0)
    assert fields(ask(node, 1)) == (0, 1, 0)
    assert fields(ask(node, 4)) == (0, -1, -1)
    assert fields(ask(node, -2)) == (0, -2, 0)


@pytest.mark.parametrize(
    ("current", "code"),
    [(7, ErrorCode.FENCED_LEADER_EPOCH), (9, ErrorCode.UNKNOWN_LEADER_EPOCH), (8, ErrorCode.NONE)],
)
def test_the_askers_leader_epoch_is_compared(
    node: HostingBroker, current: int, code: ErrorCode
) -> None:
    assert ask(node, 3, current=current).error_code == code


def test_only_the_leader_answers(node: HostingBroker) -> None:
    node.stop_leading()
    assert fields(ask(node, 3)) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1, -1)


@pytest.mark.parametrize(
    ("topic", "index", "code"),
    [
        ("unheard-of", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (ELSEWHERE, 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_what_is_not_here_is_refused(
    node: HostingBroker, topic: str, index: int, code: ErrorCode
) -> None:
    assert fields(ask(node, 3, topic=topic, index=index)) == (code, -1, -1)
