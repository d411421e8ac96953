"""AlterConfigs: exactly the named settings, each resource as a whole, durably."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.unit.core.metadata.given import broker, state, topic
from tests.unit.core.node.given import NODE_ID, Broker
from tidelog.core.metadata.records import ClearElrRecord, ConfigRecord
from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.api import api_33_alter_configs as api
from tidelog.core.wire.codec import decode, encode
from tidelog.core.wire.headers import read_request_header, request_header, response_header
from tidelog.core.wire.messages.api_33_alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    ReplacedConfig,
    ReplacedConfigsResource,
)
from tidelog.core.wire.messages.api_44_incremental_alter_configs import AlterConfigsResourceResponse

TOPIC, BROKER, LOGGER, GROUP = 2, 4, 8, 32
HAS = ConfigRecord(resource_type=TOPIC, resource_name="t", name="retention.ms", value="5")


@pytest.fixture
def node() -> Broker:
    topics = (*topic("t", 1, state(NODE_ID)), *topic("u", 2, state(NODE_ID)))
    return Broker(broker(NODE_ID), *topics, HAS)


def resource(kind: int, name: str, **settings: str | None) -> ReplacedConfigsResource:
    configs = [
        ReplacedConfig(name=key.replace("_", "."), value=value) for key, value in settings.items()
    ]
    return ReplacedConfigsResource(resource_type=kind, resource_name=name, configs=configs)


def codes(
    node: Broker,
    *resources: ReplacedConfigsResource,
    validate_only: bool = False,
    version: int = 2,
) -> list[int]:
    call = AlterConfigsRequest(resources=list(resources), validate_only=validate_only)
    answer = node.ask(api, call, AlterConfigsResponse, version)
    named = [(each.resource_type, each.resource_name) for each in resources]
    assert [(each.resource_type, each.resource_name) for each in answer.responses] == named
    return [each.error_code for each in answer.responses]


@pytest.mark.parametrize("version", api.VERSIONS)
def test_what_is_not_named_goes_back_to_its_default(node: Broker, version: int) -> None:
    assert codes(node, resource(TOPIC, "t", segment_bytes="1048576"), version=version) == [0]
    assert node.image.topic_config("t") == {"segment.bytes": "1048576"}

    assert codes(node, resource(TOPIC, "t"), version=version) == [0]
    assert node.image.topic_config("t") == {}


def test_the_answer_waits_until_the_change_is_durable(node: Broker) -> None:
    node.send(api, AlterConfigsRequest(resources=[resource(TOPIC, "t")]), 2)
    assert node.answers == []
    assert node.image.topic_config("t") == {"retention.ms": "5"}

    node.metadata.commit()
    assert len(node.answers) == 1
    assert node.image.topic_config("t") == {}


def test_validation_alone_changes_nothing(node: Broker) -> None:
    good = resource(TOPIC, "t", segment_bytes="1048576")
    bad = resource(TOPIC, "u", retention_ms="soon")
    assert codes(node, good, bad, validate_only=True) == [0, ErrorCode.INVALID_CONFIG]
    assert node.metadata.records == []


def test_what_the_topic_has_already_is_not_written_again(node: Broker) -> None:
    assert codes(node, resource(TOPIC, "t", retention_ms="5")) == [0]
    assert node.metadata.records == []


@pytest.mark.parametrize(
    ("kind", "name", "settings", "code"),
    [
        (TOPIC, "t", {"unheard.of": "1"}, ErrorCode.INVALID_CONFIG),
        (TOPIC, "t", {"retention.ms": None}, ErrorCode.INVALID_REQUEST),
        (TOPIC, "gone", {"retention.ms": "1"}, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", {"retention.ms": "1"}, ErrorCode.INVALID_REQUEST),
        (BROKER, "1", {"num.partitions": "3"}, ErrorCode.INVALID_REQUEST),
        (BROKER, "1", {"min.insync.replicas": "2"}, ErrorCode.INVALID_CONFIG),
        (BROKER, "2", {"message.max.bytes": "1"}, ErrorCode.INVALID_REQUEST),
        (LOGGER, "1", {"root": "DEBUG"}, ErrorCode.INVALID_REQUEST),
        (LOGGER, "1", {}, ErrorCode.INVALID_REQUEST),
        (77, "x", {}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_wrong_is_refused_and_nothing_is_written(
    node: Broker, kind: int, name: str, settings: dict[str, str | None], code: ErrorCode
) -> None:
    assert codes(node, resource(kind, name, **settings)) == [code]
    assert node.metadata.records == []


def test_the_same_resource_or_setting_twice_is_refused(node: Broker) -> None:
    once = resource(TOPIC, "u", retention_ms="5")
    assert codes(node, once, resource(TOPIC, "t"), once) == [42, 0, 42]
    twice = resource(TOPIC, "u", retention_ms="5")
    twice.configs *= 2
    assert codes(node, twice) == [ErrorCode.INVALID_REQUEST]


def test_the_clusters_minimum_in_sync_cannot_be_left_out() -> None:
    """It is judged by the minimum who is eligible to lead; without one there is no judging."""
    minimum = ConfigRecord(
        resource_type=BROKER, resource_name="", name="min.insync.replicas", value="2"
    )
    node = Broker(broker(NODE_ID), minimum)
    without = resource(BROKER, "", message_max_bytes="9")
    assert codes(node, without) == [ErrorCode.INVALID_CONFIG]
    assert node.metadata.records == []

    assert codes(node, resource(BROKER, "", min_insync_replicas="1")) == [ErrorCode.NONE]
    assert node.metadata.records[-1] == ClearElrRecord(topic_name="")


def test_another_brokers_settings_are_refused_here_and_the_rest_is_passed_on() -> None:
    forwarded: list[tuple[Any, bytes]] = []
    answers: list[AlterConfigsResponse] = []
    node = SimpleNamespace(
        settings=SimpleNamespace(node_id=NODE_ID),
        forwarder=SimpleNamespace(
            forward=lambda request, frame, now_ms: forwarded.append((request, bytes(frame)))
        ),
    )
    call = AlterConfigsRequest(
        resources=[resource(BROKER, "2", message_max_bytes="9"), resource(TOPIC, "t")]
    )
    body = encode(call, 2)
    whole = SimpleNamespace(
        connection=None,
        api_key=33,
        version=2,
        correlation_id=5,
        client_id="c",
        decode=lambda cls: decode(cls, memoryview(body), 2),
        answer=answers.append,
    )
    head = request_header(33, 2, correlation_id=5, client_id="c")
    api.forward(cast("Any", node), cast("Any", whole), memoryview(head + body), 0)

    ((rest, frame),) = forwarded
    header = read_request_header(memoryview(frame))
    passed = decode(AlterConfigsRequest, memoryview(frame), 2, header.body_position)
    assert passed.resources == [resource(TOPIC, "t")]
    decided = AlterConfigsResourceResponse(
        error_code=0, error_message=None, resource_type=TOPIC, resource_name="t"
    )
    answer = encode(AlterConfigsResponse(responses=[decided]), 2)
    rest.answer_parts([response_header(33, 2, 5) + answer])

    ((one, other),) = [each.responses for each in answers]
    assert (one.error_code, other.error_code) == (ErrorCode.INVALID_REQUEST, ErrorCode.NONE)
