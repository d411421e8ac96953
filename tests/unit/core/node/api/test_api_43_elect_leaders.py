"""ElectLeaders: the preferred leader or any that lives, partition by partition."""

from __future__ import annotations

import pytest

from tests.unit.core.controller.cluster import state
from tests.unit.core.node.api.controller_rules import CONTROLLER_RULES, Rule, office
from tests.unit.core.node.controller_bench import ControllerBench
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_43_elect_leaders as api
from tidelog.core.wire.messages.api_43_elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    TopicPartitions,
)


@pytest.mark.parametrize("rule", CONTROLLER_RULES)
def test_it_is_an_api_of_the_controller(rule: Rule) -> None:
    rule(api, ElectLeadersRequest(topic_partitions=None), ElectLeadersResponse)


def elected(
    given: ControllerBench, *partitions: int, kind: int = 0, version: int = 2
) -> dict[int, int]:
    answer = given.ask(
        api,
        ElectLeadersRequest(
            election_type=kind,
            topic_partitions=(
                [TopicPartitions(topic="t", partitions=list(partitions))] if partitions else None
            ),
        ),
        ElectLeadersResponse,
        version,
    )
    (result,) = answer.replica_election_results
    assert result.topic == "t"
    return {each.partition_id: each.error_code for each in result.partition_result}


@pytest.mark.parametrize("version", api.VERSIONS)
def test_elections_are_answered_partition_by_partition(version: int) -> None:
    given = office(state(1, 2, 3, leader=2), state(1, 2, 3), state(1, 2, 3, isr=(2, 3)))

    assert elected(given, 0, 1, 2, 3, version=version) == {0: 0, 1: 84, 2: 80, 3: 3}


def test_an_election_everywhere_does_not_mention_those_that_need_none() -> None:
    given = office(state(1, 2, 3, leader=2), state(1, 2, 3), state(1, 2, 3, isr=(2, 3)))

    assert elected(given) == {0: 0, 2: 80}


def test_an_election_of_an_unknown_kind_is_no_election() -> None:
    given = office(state(1, 2, 3, leader=2))
    request = ElectLeadersRequest(election_type=7, topic_partitions=None)

    answer = given.ask(api, request, ElectLeadersResponse)

    assert answer.error_code == ErrorCode.INVALID_REQUEST
    assert given.partition().leader == 2


def test_version_0_refuses_partition_by_partition() -> None:
    """It has no error code for the whole request."""
    given = office(state(1, 2, 3, leader=2))
    given.metadata.is_active = False

    assert elected(given, 0, 1, version=0) == {
        0: ErrorCode.NOT_CONTROLLER,
        1: ErrorCode.NOT_CONTROLLER,
    }
    assert given.partition().leader == 2
