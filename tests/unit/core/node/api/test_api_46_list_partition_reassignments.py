"""ListPartitionReassignments: no replica is ever on the move."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.controller_rules import CONTROLLER_RULES, Rule, office
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_46_list_partition_reassignments as api
from tidelog.core.wire.messages.api_46_list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)


@pytest.mark.parametrize("rule", CONTROLLER_RULES)
def test_it_is_an_api_of_the_controller(rule: Rule) -> None:
    rule(api, ListPartitionReassignmentsRequest(), ListPartitionReassignmentsResponse)


def test_no_replica_is_on_the_move() -> None:
    answer = office().ask(
        api,
        ListPartitionReassignmentsRequest(),
        ListPartitionReassignmentsResponse,
    )

    assert (answer.error_code, answer.topics) == (ErrorCode.NONE, [])
