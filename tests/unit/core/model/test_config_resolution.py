"""Which value counts, where it comes from, and what else was there."""

from __future__ import annotations

import pytest

from tidelog.core.model.config import ConfigSource, Value
from tidelog.core.model.config_resolution import (
    NO_LAYERS,
    BrokerLayers,
    SettingRules,
    broker_value,
    inherited_topic_values,
    resolve_broker_config,
    resolve_cluster_config,
    resolve_topic_config,
    topic_values,
)
from tidelog.core.model.topic_config import TOPIC_SETTINGS

TOPIC, BROKER = 2, 4


def test_without_any_setting_a_topic_has_the_defaults() -> None:
    assert inherited_topic_values(NO_LAYERS) == {
        name: setting.default for name, setting in TOPIC_SETTINGS.items()
    }


@pytest.mark.parametrize(
    ("file", "name", "value"),
    [
        ({"log.roll.hours": "2"}, "segment.ms", 7_200_000),
        ({"log.roll.hours": "2", "log.roll.ms": "5"}, "segment.ms", 5),
        ({"log.retention.minutes": "3"}, "retention.ms", 180_000),
        ({"log.retention.minutes": "3", "log.retention.hours": "1"}, "retention.ms", 180_000),
        ({"log.retention.hours": "-1"}, "retention.ms", -1),
        ({"log.retention.ms": "-7"}, "retention.ms", -1),
        ({"log.flush.scheduler.interval.ms": "9"}, "flush.ms", 9),
        ({"log.flush.interval.ms": "8", "log.flush.scheduler.interval.ms": "9"}, "flush.ms", 8),
        ({"message.max.bytes": "10"}, "max.message.bytes", 10),
        ({"log.cleanup.policy": "compact"}, "cleanup.policy", ("compact",)),
    ],
)
def test_a_topic_inherits_through_the_brokers_names(
    file: dict[str, str], name: str, value: Value
) -> None:
    assert inherited_topic_values(BrokerLayers({}, {}, file))[name] == value


def test_the_nearest_layer_counts() -> None:
    name, topic_name = "log.segment.bytes", "segment.bytes"
    layers = BrokerLayers({name: "1048577"}, {name: "1048578"}, {name: "1048579"})
    overrides = {topic_name: "2000000"}

    resolved = resolve_topic_config(overrides, layers)[topic_name]

    assert resolved.value == 2_000_000
    assert resolved.text == "2000000"
    assert resolved.source == ConfigSource.TOPIC
    assert resolved.synonyms == (
        (topic_name, "2000000", ConfigSource.TOPIC),
        (name, "1048577", ConfigSource.DYNAMIC_BROKER),
        (name, "1048578", ConfigSource.DYNAMIC_CLUSTER),
        (name, "1048579", ConfigSource.STATIC_BROKER),
        (name, "1073741824", ConfigSource.DEFAULT),
    )
    assert broker_value(name, layers) == 1_048_577
    assert broker_value(name, layers._replace(broker={})) == 1_048_578


def test_a_value_in_another_unit_is_described_as_kafka_does() -> None:
    """As a default without synonyms, although the file gave it."""
    resolved = resolve_topic_config({}, BrokerLayers({}, {}, {"log.roll.hours": "2"}))["segment.ms"]
    assert (resolved.text, resolved.source, resolved.synonyms) == (
        "7200000",
        ConfigSource.DEFAULT,
        (),
    )


def test_siblings_behind_the_asked_name_are_synonyms() -> None:
    layers = BrokerLayers({}, {}, {"log.roll.hours": "2", "log.roll.ms": "5"})
    assert resolve_broker_config(layers)["log.roll.ms"].synonyms == (
        ("log.roll.ms", "5", ConfigSource.STATIC_BROKER),
        ("log.roll.hours", "2", ConfigSource.STATIC_BROKER),
        ("log.roll.hours", "168", ConfigSource.DEFAULT),
    )


def test_internal_settings_are_described_only_where_they_are_set() -> None:
    assert "internal.segment.bytes" not in resolve_topic_config({}, NO_LAYERS)
    assert "internal.segment.bytes" in resolve_topic_config(
        {"internal.segment.bytes": "99"}, NO_LAYERS
    )
    assert "min.incremental.fetch.session.eviction.ms" not in resolve_broker_config(NO_LAYERS)


def test_a_text_that_no_longer_parses_is_passed_over() -> None:
    layers = BrokerLayers({}, {"message.max.bytes": "many"}, {"message.max.bytes": "7"})
    assert broker_value("message.max.bytes", layers) == 7
    inherited = inherited_topic_values(NO_LAYERS)
    assert topic_values({"retention.ms": "soon", "gone.setting": "1"}, inherited) == inherited


def test_the_cluster_describes_only_what_was_set_for_it() -> None:
    resolved = resolve_cluster_config({"min.insync.replicas": "2", "of.an.extension": "1"})
    assert list(resolved) == ["min.insync.replicas"]
    assert resolved["min.insync.replicas"].source == ConfigSource.DYNAMIC_CLUSTER


def test_rules_know_lists_and_defaults() -> None:
    rules = SettingRules(NO_LAYERS)
    assert rules.is_list(TOPIC, "cleanup.policy")
    assert rules.is_list(BROKER, "log.cleanup.policy")
    assert not rules.is_list(TOPIC, "retention.ms")
    assert not rules.is_list(TOPIC, "log.cleanup.policy")
    assert rules.default(TOPIC, "cleanup.policy") == "delete"
    assert rules.default(TOPIC, "unheard.of") is None
    assert rules.refuse_topic_settings({"unheard.of": "1"}) is not None
    assert rules.refuse_topic_settings({"retention.ms": "1"}) is None
