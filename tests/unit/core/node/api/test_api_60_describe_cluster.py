"""DescribeCluster: brokers, fenced ones where asked for, and nothing about controllers."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import broker
from tests.unit.core.node.given import CLUSTER_ID, Broker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_60_describe_cluster as api
from tidelog.core.wire.messages.api_60_describe_cluster import (
    DescribeClusterRequest,
    DescribeClusterResponse,
)


def ask(request: DescribeClusterRequest, version: int) -> DescribeClusterResponse:
    node = Broker(broker(1, rack="r"), broker(2, fenced=True))
    return node.ask(api, request, DescribeClusterResponse, version)


@pytest.mark.parametrize("version", api.VERSIONS)
def test_the_cluster_is_described_without_fenced_brokers(version: int) -> None:
    response = ask(DescribeClusterRequest(), version)

    assert (response.error_code, response.error_message) == (ErrorCode.NONE, None)
    assert (response.cluster_id, response.controller_id) == (CLUSTER_ID, 1)
    assert response.endpoint_type == 1
    assert response.cluster_authorized_operations == -(2**31)
    ((number, host, port, rack),) = [
        (each.broker_id, each.host, each.port, each.rack) for each in response.brokers
    ]
    assert (number, host, port, rack) == (1, "host-1", 9092, "r")


def test_version_2_can_include_fenced_brokers() -> None:
    response = ask(DescribeClusterRequest(include_fenced_brokers=True), 2)

    assert [(each.broker_id, each.is_fenced) for each in response.brokers] == [
        (1, False),
        (2, True),
    ]


@pytest.mark.parametrize("version", api.VERSIONS)
def test_without_an_authorizer_everything_is_allowed(version: int) -> None:
    request = DescribeClusterRequest(include_cluster_authorized_operations=True)

    assert ask(request, version).cluster_authorized_operations == 8096


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("endpoint_type", "error"),
    [
        (2, ErrorCode.MISMATCHED_ENDPOINT_TYPE),
        (0, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
        (77, ErrorCode.UNSUPPORTED_ENDPOINT_TYPE),
    ],
)
def test_only_brokers_can_be_asked_for_here(
    version: int, endpoint_type: int, error: ErrorCode
) -> None:
    response = ask(DescribeClusterRequest(endpoint_type=endpoint_type), version)

    assert response.error_code == error
    assert response.error_message
    assert response.brokers == []
    assert (response.cluster_id, response.controller_id) == ("", -1)
