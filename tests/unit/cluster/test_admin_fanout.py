"""Weighing answers: whom to believe when nodes tell different things."""

from __future__ import annotations

from tidelog.client.admin.cluster import QuorumInfo
from tidelog.client.admin.topics import PartitionDescription, TopicDescription
from tidelog.cluster.admin_fanout import best_description, newest_quorum
from tidelog.core.model.errors import ErrorCode


def topic(leader: int, leader_epoch: int, *, error: ErrorCode = ErrorCode.NONE) -> TopicDescription:
    told = PartitionDescription(0, leader, leader_epoch, (1, 2, 3), (1, 2), (), ErrorCode.NONE)
    return TopicDescription(error, "orders", b"", {0: told} if error == ErrorCode.NONE else {})


def quorum(leader: int | None, quorum_epoch: int) -> QuorumInfo:
    return QuorumInfo(ErrorCode.NONE, leader, quorum_epoch, 0, (), ())


def test_the_controller_is_believed_whatever_others_say() -> None:
    told = {1: topic(1, 9), 2: topic(2, 5)}
    assert best_description(told, controller=2) is told[2]


def test_without_a_controller_the_newest_leader_epoch_is() -> None:
    told = {1: topic(1, 5), 2: topic(2, 6), 3: topic(1, 5)}
    assert best_description(told, controller=None) is told[2]


def test_among_equals_the_commonest_story_is() -> None:
    told = {1: topic(1, 5), 2: topic(2, 5), 3: topic(2, 5)}
    assert best_description(told, controller=None) == topic(2, 5)


def test_a_refusal_counts_only_if_there_is_nothing_else() -> None:
    unknown = topic(1, 0, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    assert best_description({1: unknown, 2: topic(1, 0)}, controller=None) == topic(1, 0)
    assert best_description({1: unknown}, controller=None) is unknown
    assert best_description({}, controller=None) is None


def test_the_newest_quorum_that_has_a_leader_counts() -> None:
    assert newest_quorum([quorum(1, 4), quorum(2, 7), None, quorum(None, 9)]) == quorum(2, 7)
    assert newest_quorum([None, quorum(None, 9)]) is None
