"""AlterPartitionReassignments: outcomes partition by partition, in the order of the request."""

from __future__ import annotations

import pytest

from tests.unit.core.controller.cluster import state
from tests.unit.core.node.api.controller_rules import CONTROLLER_RULES, Rule, office
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_45_alter_partition_reassignments as api
from tidelog.core.wire.messages.api_45_alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignableTopic,
)


@pytest.mark.parametrize("rule", CONTROLLER_RULES)
def test_it_is_an_api_of_the_controller(rule: Rule) -> None:
    rule(api, AlterPartitionReassignmentsRequest(), AlterPartitionReassignmentsResponse)


def request(
    *topics: tuple[str, dict[int, list[int] | None]], may_change_factor: bool = True
) -> AlterPartitionReassignmentsRequest:
    return AlterPartitionReassignmentsRequest(
        allow_replication_factor_change=may_change_factor,
        topics=[
            ReassignableTopic(
                name=name,
                partitions=[
                    ReassignablePartition(partition_index=index, replicas=replicas)
                    for index, replicas in partitions.items()
                ],
            )
            for name, partitions in topics
        ],
    )


@pytest.mark.parametrize("version", api.VERSIONS)
def test_every_partition_has_its_outcome(version: int) -> None:
    given = office(state(1, 2), state(1, 2), state(1, 2))

    answer = given.ask(
        api,
        request(("t", {0: [2, 3], 1: None, 2: [1, 1], 3: [1]}), ("nowhere", {0: [1]})),
        AlterPartitionReassignmentsResponse,
        version,
    )

    outcomes = {
        (topic.name, each.partition_index): each.error_code
        for topic in answer.responses
        for each in topic.partitions
    }
    assert (answer.error_code, answer.error_message) == (ErrorCode.NONE, None)
    assert outcomes == {
        ("t", 0): ErrorCode.NONE,
        ("t", 1): ErrorCode.NO_REASSIGNMENT_IN_PROGRESS,
        ("t", 2): ErrorCode.INVALID_REPLICA_ASSIGNMENT,
        ("t", 3): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("nowhere", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    }
    assert given.partition().adding_replicas == (3,)


def test_version_1_can_keep_the_number_of_replicas() -> None:
    given = office(state(1, 2))

    answer = given.ask(
        api,
        request(("t", {0: [1, 2, 3]}), may_change_factor=False),
        AlterPartitionReassignmentsResponse,
        1,
    )

    assert not answer.allow_replication_factor_change
    (outcome,) = answer.responses[0].partitions
    assert outcome.error_code == ErrorCode.INVALID_REPLICATION_FACTOR
    assert given.partition() == state(1, 2)
