"""AssignReplicasToDirs: a broker reports in which directory a replica lies."""

from __future__ import annotations

import pytest

from tests.unit.core.controller.cluster import ID, state
from tests.unit.core.metadata.given import topic_id
from tests.unit.core.node.api.controller_rules import CONTROLLER_RULES, Rule, office
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_73_assign_replicas_to_dirs as api
from tidelog.core.wire.messages.api_73_assign_replicas_to_dirs import (
    AssignReplicasToDirsRequest,
    AssignReplicasToDirsResponse,
    DirectoryData,
    PartitionData,
    TopicData,
)


@pytest.mark.parametrize("rule", CONTROLLER_RULES)
def test_it_is_an_api_of_the_controller(rule: Rule) -> None:
    rule(api, AssignReplicasToDirsRequest(broker_id=1), AssignReplicasToDirsResponse)


def test_directories_are_answered_replica_by_replica_in_the_order_asked() -> None:
    given = office(state(1, 2, 3), state(2, 3))
    one, two = b"1" * 16, b"2" * 16
    mine, other = PartitionData(partition_index=0), PartitionData(partition_index=1)
    directories = [
        DirectoryData(id_=two, topics=[TopicData(topic_id=ID, partitions=[other, mine])]),
        DirectoryData(id_=one, topics=[TopicData(topic_id=topic_id(9), partitions=[mine])]),
    ]

    answer = given.ask(
        api,
        AssignReplicasToDirsRequest(broker_id=1, broker_epoch=1, directories=directories),
        AssignReplicasToDirsResponse,
    )

    result = [
        (directory.id_, each.partition_index, each.error_code)
        for directory in answer.directories
        for by_topic in directory.topics
        for each in by_topic.partitions
    ]
    assert result == [(two, 1, 6), (two, 0, 0), (one, 0, 100)]
    assert given.partition().directory(1) == two


def test_directories_of_a_former_process_are_not_taken_down() -> None:
    answer = office().ask(
        api,
        AssignReplicasToDirsRequest(broker_id=1, broker_epoch=0),
        AssignReplicasToDirsResponse,
    )

    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
