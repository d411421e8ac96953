"""ApiVersions: what is served, which features, and the answer to a version that is not there."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.unit.core.node.given import CLUSTER_ID, NODE_ID, Broker
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import HANDLERS
from tidelog.core.node.api import api_18_api_versions as api
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.messages.api_18_api_versions import ApiVersionsRequest, ApiVersionsResponse

FINALIZED = {
    "eligible.leader.replicas.version": 1,
    "group.version": 1,
    "kraft.version": 1,
    "metadata.version": 30,
    "transaction.version": 2,
}

ENVELOPE = 58


def hello(name: str = "librdkafka", version: str = "2.5.0") -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", api.VERSIONS)
def test_every_api_is_advertised_in_every_version(version: int) -> None:
    response = Broker().ask(api, hello(), ApiVersionsResponse, version)

    assert response.error_code == ErrorCode.NONE
    advertised = {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}
    assert advertised == {
        key: (served.advertised[0], served.advertised[-1])
        for key, served in HANDLERS.items()
        if served.advertised
    }
    assert ENVELOPE not in advertised  # only nodes speak it, among themselves
    assert advertised[0] == (0, 13)  # older clients look here for what they may compress
    assert advertised[18] == (0, 5)


@pytest.mark.parametrize(
    ("version", "supported"),
    [(2, set()), (3, {"metadata.version"}), (4, set(FINALIZED)), (5, set(FINALIZED))],
)
def test_features_that_can_be_off_are_shown_from_version_4_on(
    version: int, supported: set[str]
) -> None:
    response = Broker().ask(api, hello(), ApiVersionsResponse, version)

    assert {each.name for each in response.supported_features} == supported
    finalized = {each.name: each.max_version_level for each in response.finalized_features}
    assert finalized == (FINALIZED if version >= 3 else {})
    assert all(
        each.min_version_level == each.max_version_level for each in response.finalized_features
    )
    assert response.finalized_features_epoch == (41 if version >= 3 else -1)


def test_the_levels_of_supported_features_are_kafkas() -> None:
    response = Broker().ask(api, hello(), ApiVersionsResponse, 4)

    levels = {
        each.name: (each.min_version, each.max_version) for each in response.supported_features
    }
    assert levels == {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 30),
        "transaction.version": (0, 2),
    }


@pytest.mark.parametrize("version", [3, 4, 5])
@pytest.mark.parametrize(
    ("name", "software_version"),
    [("", "1"), ("a", ""), ("-a", "1"), ("a-", "1"), ("a b", "1"), ("a", "1\n"), ("ä", "1")],
)
def test_software_with_a_strange_name_is_refused(
    version: int, name: str, software_version: str
) -> None:
    response = Broker().ask(api, hello(name, software_version), ApiVersionsResponse, version)

    assert response.error_code == ErrorCode.INVALID_REQUEST
    assert response.api_keys == []


def test_older_versions_do_not_say_their_name() -> None:
    response = Broker().ask(api, hello("", ""), ApiVersionsResponse, 2)

    assert response.error_code == ErrorCode.NONE


def test_the_software_is_remembered_with_the_connection() -> None:
    request = Broker().send(api, hello("apache-kafka-java", "4.3.1"), 4)

    assert request.connection.client_software == ("apache-kafka-java", "4.3.1")


@pytest.mark.parametrize("version", [6, 127, -1])
def test_a_version_that_is_not_there_is_answered_in_version_0(version: int) -> None:
    answers: list[bytes] = []

    class Request:
        def __init__(self) -> None:
            self.version = version

        def answer_bytes(self, body: bytes) -> None:
            answers.append(body)

    api.handle(cast("Any", Broker()), cast("Any", Request()), 0)

    (body,) = answers
    response = decode(ApiVersionsResponse, memoryview(body), 0)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    ((key, low, high),) = [(k.api_key, k.min_version, k.max_version) for k in response.api_keys]
    assert (key, low, high) == (18, 0, 5)


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "expected"),
    [
        (None, -1, ErrorCode.NONE),  # a bootstrap server: the client knows neither
        (CLUSTER_ID, NODE_ID, ErrorCode.NONE),
        (CLUSTER_ID, NODE_ID + 1, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("AAAAAAAAQACAAAAAAAAAAg", NODE_ID, ErrorCode.REBOOTSTRAP_REQUIRED),
        ("", NODE_ID, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER_ID, -2, ErrorCode.REBOOTSTRAP_REQUIRED),
        (CLUSTER_ID, -1, ErrorCode.INVALID_REQUEST),
        (None, NODE_ID, ErrorCode.INVALID_REQUEST),
        (None, -2, ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_client_that_meant_another_node_learns_so(
    cluster_id: str | None, node_id: int, expected: ErrorCode
) -> None:
    request = hello()
    request.cluster_id, request.node_id = cluster_id, node_id
    response = Broker().ask(api, request, ApiVersionsResponse, 5)

    assert response.error_code == expected
    assert bool(response.api_keys) == (expected == ErrorCode.NONE)


def test_a_strange_name_is_refused_before_the_wrong_node() -> None:
    request = hello("no spaces")
    request.cluster_id, request.node_id = CLUSTER_ID, NODE_ID + 1
    response = Broker().ask(api, request, ApiVersionsResponse, 5)

    assert response.error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize(
    ("cluster_id", "node_id", "rest"),
    [
        (None, -1, "00ffffffff00"),
        (CLUSTER_ID, 1, "17414141414141414151414341414141414141414141510000000100"),
    ],
)
def test_version_5_has_the_bytes_of_the_java_client_of_kafka_4_4(
    cluster_id: str | None, node_id: int, rest: str
) -> None:
    request = hello("apache-kafka-java", "4.4.0")
    request.cluster_id, request.node_id = cluster_id, node_id

    assert encode(request, 5).hex() == "126170616368652d6b61666b612d6a61766106342e342e30" + rest
