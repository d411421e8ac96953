"""ListConfigResources: what can have settings, by type."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import broker, state, topic
from tests.unit.core.node.given import NODE_ID, Broker
from tidelog.core.metadata.records import ConfigRecord
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_74_list_config_resources as api
from tidelog.core.wire.messages.api_74_list_config_resources import (
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32


@pytest.fixture
def node() -> Broker:
    settings = [
        ConfigRecord(resource_type=kind, resource_name=name, name="a.setting", value="1")
        for kind, name in ((GROUP, "h"), (GROUP, "g"), (METRICS, "m"), (TOPIC, "t"), (BROKER, ""))
    ]
    topics = (*topic("t", 1, state(NODE_ID)), *topic("u", 2, state(NODE_ID)))
    return Broker(broker(NODE_ID), broker(2), *topics, *settings)


def listed(node: Broker, *kinds: int, version: int = 1) -> list[tuple[int, str]]:
    call = ListConfigResourcesRequest(resource_types=list(kinds))
    answer = node.ask(api, call, ListConfigResourcesResponse, version)
    assert answer.error_code == ErrorCode.NONE
    return [(each.resource_type, each.resource_name) for each in answer.config_resources]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (TOPIC, ["t", "u"]),
        (BROKER, ["1", "2"]),
        (LOGGER, ["1", "2"]),
        (METRICS, ["m"]),
        (GROUP, ["g", "h"]),
    ],
)
def test_each_type_is_listed_by_itself(node: Broker, kind: int, names: list[str]) -> None:
    assert listed(node, kind) == [(kind, name) for name in names]


def test_no_type_means_every_type(node: Broker) -> None:
    kinds = (GROUP, METRICS, LOGGER, BROKER, TOPIC)
    assert listed(node) == [each for kind in kinds for each in listed(node, kind)]
    assert listed(node, TOPIC, GROUP, TOPIC) == listed(node, GROUP) + listed(node, TOPIC)


def test_version_0_lists_client_metrics_only(node: Broker) -> None:
    assert listed(node, version=0) == [(METRICS, "m")]


@pytest.mark.parametrize("kinds", [[0], [77], [TOPIC, -1]])
def test_one_unknown_type_fails_the_whole(node: Broker, kinds: list[int]) -> None:
    call = ListConfigResourcesRequest(resource_types=kinds)
    answer = node.ask(api, call, ListConfigResourcesResponse, 1)

    assert answer.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert answer.config_resources == []
