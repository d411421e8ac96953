"""FindCoordinator: nobody coordinates here yet, and every key hears so."""

from __future__ import annotations

import pytest

from tests.unit.core.node.given import Broker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import HANDLERS
from tidelog.core.node.api import api_10_find_coordinator as api
from tidelog.core.wire.messages.api_10_find_coordinator import (
    FindCoordinatorRequest,
    FindCoordinatorResponse,
)


@pytest.mark.parametrize("version", api.VERSIONS[:4])
def test_a_single_key_has_no_coordinator(version: int) -> None:
    call = FindCoordinatorRequest(key="g")
    response = Broker().ask(api, call, FindCoordinatorResponse, version)

    assert response.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert (response.node_id, response.host, response.port) == (-1, "", -1)
    if version >= 1:
        assert "not coordinate" in (response.error_message or "")


@pytest.mark.parametrize("version", api.VERSIONS[4:])
def test_none_of_many_keys_has_a_coordinator(version: int) -> None:
    call = FindCoordinatorRequest(coordinator_keys=["g", "h"], key_type=1)
    response = Broker().ask(api, call, FindCoordinatorResponse, version)

    assert [each.key for each in response.coordinators] == ["g", "h"]
    for each in response.coordinators:
        assert each.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert (each.node_id, each.host, each.port) == (-1, "", -1)


def test_version_0_is_advertised_which_is_librdkafkas_sign_for_lz4() -> None:
    assert 0 in HANDLERS[api.API_KEY].advertised
