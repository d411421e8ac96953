"""BrokerHeartbeat: a broker says that it lives, and hears how it stands."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.controller_rules import CONTROLLER_RULES, Rule, office
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_63_broker_heartbeat as api
from tidelog.core.wire.messages.api_63_broker_heartbeat import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
)


@pytest.mark.parametrize("rule", CONTROLLER_RULES)
def test_it_is_an_api_of_the_controller(rule: Rule) -> None:
    rule(api, BrokerHeartbeatRequest(broker_id=1), BrokerHeartbeatResponse)


def test_a_heartbeat_of_another_life_is_refused() -> None:
    given = office()

    assert given.beat(1, broker_epoch=0).error_code == ErrorCode.STALE_BROKER_EPOCH
    assert given.beat(5, broker_epoch=1).error_code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_new_broker_is_fenced_until_it_has_read_the_metadata(version: int) -> None:
    given = office()
    broker_epoch = given.register(4).broker_epoch

    def beat(offset: int) -> BrokerHeartbeatResponse:
        request = BrokerHeartbeatRequest(
            broker_id=4, broker_epoch=broker_epoch, current_metadata_offset=offset
        )
        return given.ask(api, request, BrokerHeartbeatResponse, version)

    early = beat(0)
    assert (early.error_code, early.is_caught_up, early.is_fenced) == (0, False, True)
    ready = beat(broker_epoch)
    assert (ready.error_code, ready.is_caught_up, ready.is_fenced) == (0, True, False)
    assert not given.brokers[4].is_fenced


def test_a_broker_that_wants_to_stop_hears_when_it_may() -> None:
    given = office()
    first = given.beat(1, want_shut_down=True)
    assert given.partition().leader == 2, "its leaderships are handed over"

    given.beat(2)
    given.beat(3)
    answer = given.beat(1, want_shut_down=True)

    assert (first.error_code, answer.error_code) == (0, 0)
    assert answer.should_shut_down
