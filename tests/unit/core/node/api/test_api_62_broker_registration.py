"""BrokerRegistration: a broker process introduces itself and gets its broker epoch."""

from __future__ import annotations

import pytest

from tests.unit.core.node.api.controller_rules import CONTROLLER_RULES, Rule, office
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_62_broker_registration as api
from tidelog.core.wire.messages.api_62_broker_registration import (
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
)


@pytest.mark.parametrize("rule", CONTROLLER_RULES)
def test_it_is_an_api_of_the_controller(rule: Rule) -> None:
    rule(
        api,
        BrokerRegistrationRequest(broker_id=1, cluster_id="x", rack=None),
        BrokerRegistrationResponse,
    )


def test_a_broker_gets_the_end_of_the_metadata_log_as_its_epoch() -> None:
    given = office()
    end_offset = given.metadata.log.log_end_offset

    answer = given.register(4)

    assert (answer.error_code, answer.broker_epoch) == (ErrorCode.NONE, end_offset)
    assert given.brokers[4].broker_epoch == end_offset
    assert given.brokers[4].is_fenced, "until it has caught up"


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_registration_without_directories_is_invalid_in_every_version(version: int) -> None:
    """Versions that cannot name them are too old for what the cluster has agreed on."""
    given = office()
    request = BrokerRegistrationRequest(broker_id=4, cluster_id="c", rack=None)

    answer = given.ask(api, request, BrokerRegistrationResponse, version)

    assert answer.error_code == ErrorCode.INVALID_REGISTRATION
    assert answer.broker_epoch == -1


def test_registrations_of_another_cluster_or_of_zookeeper_are_refused() -> None:
    given = office()
    request = BrokerRegistrationRequest(
        broker_id=4, cluster_id="c", rack=None, is_migrating_zk_broker=True
    )

    assert given.register(4, cluster_id="d").error_code == ErrorCode.INCONSISTENT_CLUSTER_ID
    answer = given.ask(api, request, BrokerRegistrationResponse)
    assert answer.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
