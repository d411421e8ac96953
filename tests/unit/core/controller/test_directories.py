"""Where replicas lie: taken down, and whoever lies in a lost directory is out at once."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.controller.cluster import (
    CAREFUL,
    ID,
    applied,
    cluster,
    directory,
    roles,
    state,
)
from tidelog.core.controller.directories import Placed, decide_directories
from tidelog.core.metadata.cluster import (
    LOST_DIRECTORY,
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
)
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.partitions_by_broker import PartitionKey
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicId

ONE, TWO, LOST = directory(11), directory(12), directory(13)


def with_two_directories(*isr: int) -> ClusterImage:
    image = cluster(state(1, 2, 3, isr=isr or (1, 2, 3)))
    image.brokers[1] = replace(image.brokers[1], log_directories=(ONE, TWO))
    return image


def test_a_directory_is_taken_down_once_and_nothing_else_changes() -> None:
    image = with_two_directories()
    reported = [Placed(PartitionKey(ID, 0), TWO)]

    changes, errors = decide_directories(image, CAREFUL, broker_id=1, reported=reported)
    after = applied(image, changes)

    assert errors == [ErrorCode.NONE]
    assert after.directories == (TWO, directory(2), directory(3))
    assert (roles(after), after.leader_epoch) == ((1, (1, 2, 3), (), ()), 0)
    again, _ = decide_directories(image, CAREFUL, broker_id=1, reported=reported)
    assert again.records == []


@pytest.mark.parametrize("lost", [LOST, LOST_DIRECTORY, directory(2)])
def test_a_replica_in_a_lost_directory_leaves_the_set_and_leads_no_more(lost: bytes) -> None:
    image = with_two_directories()

    reported = [Placed(PartitionKey(ID, 0), lost)]
    changes, errors = decide_directories(image, CAREFUL, broker_id=1, reported=reported)
    after = applied(image, changes)

    assert errors == [ErrorCode.NONE]
    assert after.directory(1) == lost
    assert roles(after) == (2, (2, 3), (), ())


@pytest.mark.parametrize("to_come", [UNASSIGNED_DIRECTORY, MIGRATING_DIRECTORY])
def test_a_replica_whose_directory_is_still_to_come_stays_and_leads(to_come: bytes) -> None:
    image = with_two_directories()

    reported = [Placed(PartitionKey(ID, 0), to_come)]
    changes, errors = decide_directories(image, CAREFUL, broker_id=1, reported=reported)
    after = applied(image, changes)

    assert errors == [ErrorCode.NONE]
    assert after.directory(1) == to_come
    assert (roles(after), after.leader_epoch) == ((1, (1, 2, 3), (), ()), 0)


def test_a_replica_in_a_lost_directory_that_is_not_in_sync_moves_nobody() -> None:
    image = with_two_directories(2, 3)

    reported = [Placed(PartitionKey(ID, 0), LOST)]
    changes, _ = decide_directories(image, CAREFUL, broker_id=1, reported=reported)

    assert roles(applied(image, changes)) == (2, (2, 3), (), ())


@pytest.mark.parametrize(
    ("key", "broker_id", "error"),
    [
        (PartitionKey(TopicId(b"?" * 16), 0), 1, ErrorCode.UNKNOWN_TOPIC_ID),
        (PartitionKey(ID, 1), 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (PartitionKey(ID, -1), 1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (PartitionKey(ID, 0), 3, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ],
)
def test_what_the_broker_does_not_hold_is_refused_and_the_others_are_taken(
    key: PartitionKey, broker_id: int, error: ErrorCode
) -> None:
    image = cluster(state(1, 2))
    reported = [Placed(key, ONE), Placed(PartitionKey(ID, 0), ONE)]

    _, errors = decide_directories(image, CAREFUL, broker_id=broker_id, reported=reported)

    assert errors[0] is error
    assert errors[1] is (ErrorCode.NONE if broker_id == 1 else error)
