"""DescribeConfigs: settings of topics and brokers with their sources, synonyms and words."""

from __future__ import annotations

import pytest

from tests.unit.core.metadata.given import apply, broker, state, topic
from tests.unit.core.node.given import NODE_ID, Broker
from tidelog.core.metadata.records import ConfigRecord
from tidelog.core.model.broker_config import BROKER_SETTINGS
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.topic_config import TOPIC_SETTINGS
from tidelog.core.node.api import api_32_describe_configs as api
from tidelog.core.wire.messages.api_32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
LAST = api.VERSIONS[-1]


@pytest.fixture
def node() -> Broker:
    node = Broker(
        broker(NODE_ID), *topic("t", 1, state(NODE_ID)), settings={"log.segment.bytes": "2097152"}
    )
    given = [
        ConfigRecord(resource_type=TOPIC, resource_name="t", name="retention.ms", value=" 5 "),
        ConfigRecord(resource_type=BROKER, resource_name="", name="message.max.bytes", value="7"),
        ConfigRecord(resource_type=BROKER, resource_name="1", name="log.retention.ms", value="9"),
    ]
    apply(node.image, given)
    return node


def describe(
    node: Broker,
    kind: int,
    name: str,
    *keys: str,
    version: int = LAST,
    synonyms: bool = False,
    documentation: bool = False,
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=list(keys) or None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=synonyms)
    if version >= 3:
        request.include_documentation = documentation
    (result,) = node.ask(api, request, DescribeConfigsResponse, version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def one(node: Broker, kind: int, name: str, key: str, **how: bool) -> DescribeConfigsResourceResult:
    (setting,) = describe(node, kind, name, key, **how).configs
    return setting


@pytest.mark.parametrize("version", api.VERSIONS)
def test_a_topic_tells_every_setting_but_internal_ones(node: Broker, version: int) -> None:
    result = describe(node, TOPIC, "t", version=version)

    assert result.error_code == ErrorCode.NONE
    assert {each.name for each in result.configs} == set(TOPIC_SETTINGS) - {
        "internal.segment.bytes"
    }
    values = {each.name: (each.value, each.config_source) for each in result.configs}
    assert values["retention.ms"] == ("5", 1)
    assert values["segment.bytes"] == ("2097152", 4)
    assert values["max.message.bytes"] == ("7", 3)
    assert values["cleanup.policy"] == ("delete", 5)
    assert not any(each.read_only or each.is_sensitive or each.synonyms for each in result.configs)
    types = {each.name: each.config_type for each in result.configs}
    assert types["cleanup.policy"] == (7 if version >= 3 else 0)


def test_synonyms_are_told_where_they_are_asked_for(node: Broker) -> None:
    assert one(node, TOPIC, "t", "max.message.bytes", synonyms=True).synonyms == [
        DescribeConfigsSynonym(name="message.max.bytes", value="7", source=3),
        DescribeConfigsSynonym(name="message.max.bytes", value="1048588", source=5),
    ]
    assert one(node, TOPIC, "t", "retention.ms", synonyms=True).synonyms == [
        DescribeConfigsSynonym(name="retention.ms", value="5", source=1),
        DescribeConfigsSynonym(name="log.retention.ms", value="9", source=2),
        DescribeConfigsSynonym(name="log.retention.hours", value="168", source=5),
    ]


def test_words_are_told_where_they_are_asked_for(node: Broker) -> None:
    assert one(node, TOPIC, "t", "retention.ms").documentation is None
    told = one(node, TOPIC, "t", "retention.ms", documentation=True).documentation
    assert told == TOPIC_SETTINGS["retention.ms"].about


def test_keys_choose_and_unknown_ones_are_passed_over(node: Broker) -> None:
    result = describe(node, TOPIC, "t", "segment.ms", "unheard.of", "segment.ms")
    assert [each.name for each in result.configs] == ["segment.ms"]


def test_no_key_at_all_means_every_setting(node: Broker) -> None:
    resource = DescribeConfigsResource(
        resource_type=TOPIC, resource_name="t", configuration_keys=[]
    )
    request = DescribeConfigsRequest(resources=[resource])
    (result,) = node.ask(api, request, DescribeConfigsResponse, LAST).results
    assert len(result.configs) == len(TOPIC_SETTINGS) - 1


def test_a_broker_tells_its_settings_and_which_may_change(node: Broker) -> None:
    result = describe(node, BROKER, "1")
    settings = {each.name: each for each in result.configs}

    assert set(settings) == {
        name for name, setting in BROKER_SETTINGS.items() if not setting.is_internal
    }
    assert (settings["node.id"].value, settings["node.id"].config_source) == ("1", 4)
    assert (settings["broker.id"].value, settings["broker.id"].config_source) == ("1", 4)
    assert settings["node.id"].read_only
    assert not settings["message.max.bytes"].read_only
    assert settings["log.retention.ms"].config_source == 2
    assert settings["log.retention.minutes"].value is None
    assert settings["log.cleaner.io.max.bytes.per.second"].value == "1.7976931348623157E308"


def test_all_brokers_together_have_only_what_was_given_to_them(node: Broker) -> None:
    (setting,) = describe(node, BROKER, "", synonyms=True).configs
    assert (setting.name, setting.value, setting.config_source) == ("message.max.bytes", "7", 3)
    assert len(setting.synonyms) == 1


def test_the_value_of_an_unheard_of_setting_is_a_secret(node: Broker) -> None:
    record = ConfigRecord(resource_type=BROKER, resource_name="", name="x.y", value="secret")
    apply(node.image, [record])
    for name in ("", "1"):
        setting = one(node, BROKER, name, "x.y")
        assert (setting.value, setting.is_sensitive, setting.config_type) == (None, True, 0)
        assert setting.config_source == 3


def test_loggers_are_not_told_because_there_are_none(node: Broker) -> None:
    result = describe(node, LOGGER, "1")
    assert (result.error_code, result.configs) == (ErrorCode.NONE, [])


@pytest.mark.parametrize(
    ("kind", "name", "code"),
    [
        (TOPIC, "unheard-of", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "__cluster_metadata", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        (TOPIC, "", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (TOPIC, "no spaces", ErrorCode.INVALID_TOPIC_EXCEPTION),
        (BROKER, "2", ErrorCode.INVALID_REQUEST),
        (BROKER, "one", ErrorCode.INVALID_REQUEST),
        (BROKER, "1" * 40, ErrorCode.INVALID_REQUEST),
        (LOGGER, "", ErrorCode.INVALID_REQUEST),
        (LOGGER, "2", ErrorCode.INVALID_REQUEST),
        (METRICS, "m", ErrorCode.INVALID_REQUEST),
        (GROUP, "", ErrorCode.INVALID_REQUEST),
        (0, "x", ErrorCode.INVALID_REQUEST),
        (77, "x", ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_cannot_be_told_is_refused(
    node: Broker, kind: int, name: str, code: ErrorCode
) -> None:
    result = describe(node, kind, name)
    assert (result.error_code, result.configs) == (code, [])
    assert result.error_message


def test_one_resource_of_an_unknown_type_refuses_all(node: Broker) -> None:
    resources = [
        DescribeConfigsResource(resource_type=kind, resource_name="t") for kind in (TOPIC, 77)
    ]
    answer = node.ask(
        api, DescribeConfigsRequest(resources=resources), DescribeConfigsResponse, LAST
    )
    assert [each.error_code for each in answer.results] == [ErrorCode.INVALID_REQUEST] * 2


def test_resources_are_answered_one_by_one(node: Broker) -> None:
    resources = [
        DescribeConfigsResource(resource_type=TOPIC, resource_name=name) for name in ("t", "u")
    ]
    answer = node.ask(
        api, DescribeConfigsRequest(resources=resources), DescribeConfigsResponse, LAST
    )
    assert [(each.resource_name, each.error_code) for each in answer.results] == [
        ("t", ErrorCode.NONE),
        ("u", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]
