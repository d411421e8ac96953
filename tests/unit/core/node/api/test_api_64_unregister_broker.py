"""UnregisterBroker: a broker is forgotten, with all that it replicates."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.controller_rules import CONTROLLER_RULES, Rule, office
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_64_unregister_broker as api
from tidelog.core.wire.messages.api_64_unregister_broker import (
    UnregisterBrokerRequest,
    UnregisterBrokerResponse,
)


@pytest.mark.parametrize("rule", CONTROLLER_RULES)
def test_it_is_an_api_of_the_controller(rule: Rule) -> None:
    rule(api, UnregisterBrokerRequest(broker_id=1), UnregisterBrokerResponse)


def test_a_broker_is_forgotten_once() -> None:
    given = office()
    request = UnregisterBrokerRequest(broker_id=1)

    answer = given.ask(api, request, UnregisterBrokerResponse)
    again = given.ask(api, request, UnregisterBrokerResponse)

    assert (answer.error_code, answer.error_message) == (0, "")
    assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
    assert 1 not in given.brokers
    assert given.partition().isr == (2, 3)
    assert given.beat(1, broker_epoch=1).error_code == ErrorCode.STALE_BROKER_EPOCH
