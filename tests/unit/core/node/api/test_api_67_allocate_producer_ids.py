"""AllocateProducerIds: a broker reserves a block of ids that nobody else gets."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.controller_rules import CONTROLLER_RULES, Rule, office
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_67_allocate_producer_ids as api
from tidelog.core.wire.messages.api_67_allocate_producer_ids import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
)


@pytest.mark.parametrize("rule", CONTROLLER_RULES)
def test_it_is_an_api_of_the_controller(rule: Rule) -> None:
    rule(api, AllocateProducerIdsRequest(broker_id=1), AllocateProducerIdsResponse)


@pytest.mark.scenario("D4-I3")
def test_blocks_of_producer_ids_never_overlap_and_need_the_right_broker_epoch() -> None:
    given = office()

    def reserve(broker_id: int, broker_epoch: int) -> tuple[int, int, int]:
        request = AllocateProducerIdsRequest(broker_id=broker_id, broker_epoch=broker_epoch)
        answer = given.ask(api, request, AllocateProducerIdsResponse)
        return answer.error_code, answer.producer_id_start, answer.producer_id_len

    assert reserve(1, 1) == (0, 0, 1_000)
    assert reserve(2, 2) == (0, 1_000, 1_000)
    assert reserve(1, 2) == (ErrorCode.STALE_BROKER_EPOCH, 0, 0)
    assert reserve(7, 1) == (ErrorCode.STALE_BROKER_EPOCH, 0, 0)
