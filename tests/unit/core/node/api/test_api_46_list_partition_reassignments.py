"""ListPartitionReassignments: the partitions on the move, and no other."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.core.controller.cluster import state
from tests.unit.core.node.api.controller_rules import CONTROLLER_RULES, Rule, office
from tidelog.core.node.api import api_46_list_partition_reassignments as api
from tidelog.core.wire.messages.api_46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListPartitionReassignmentsTopics,
)

MOVING = replace(state(3, 2, 1, isr=(1, 2)), adding_replicas=(3,), removing_replicas=(1,))
DROPPING = replace(state(1, 2, 3, isr=(1, 2)), removing_replicas=(3,))


@pytest.mark.parametrize("rule", CONTROLLER_RULES)
def test_it_is_an_api_of_the_controller(rule: Rule) -> None:
    rule(api, ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse)


@pytest.mark.parametrize(
    ("requested", "listed"),
    [
        (None, {0: ([3, 2, 1], [3], [1]), 2: ([1, 2, 3], [], [3])}),
        ([2, 1, 7, -1], {2: ([1, 2, 3], [], [3])}),
        ([1], {}),
        ([], {}),
    ],
)
def test_partitions_on_the_move_are_listed_by_name_or_all(
    requested: list[int] | None, listed: dict[int, tuple[list[int], list[int], list[int]]]
) -> None:
    topics = None
    if requested is not None:
        topics = [
            ListPartitionReassignmentsTopics(name="nowhere", partition_indexes=[0]),
            ListPartitionReassignmentsTopics(name="t", partition_indexes=requested),
        ]

    answer = office(MOVING, state(1, 2, 3), DROPPING).ask(
        api,
        ListPartitionReassignmentsRequest(topics=topics),
        ListPartitionReassignmentsResponse,
    )

    assert [topic.name for topic in answer.topics] == (["t"] if listed else [])
    assert listed == {
        each.partition_index: (each.replicas, each.adding_replicas, each.removing_replicas)
        for topic in answer.topics
        for each in topic.partitions
    }
