"""Every setting of ours has the type, default, limits and mutability that Kafka 4.3.1 gives it.

The facts in kafka_settings.txt were read from Kafka's own definitions.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

import pytest

from tidelog.core.model.broker_config import BROKER_SETTINGS
from tidelog.core.model.config import Setting, SettingType, format_value
from tidelog.core.model.topic_config import BROKER_SYNONYMS, TOPIC_SETTINGS

OUR_OWN = {"min.incremental.fetch.session.eviction.ms"}
"""A constant in Kafka."""

EXPLAINED = {
    ("process.roles", "default"): "Kafka wants it set; a Tidelog node has both roles",
    ("node.id", "default"): "both want it set; ours says so in its own way",
    ("controller.listener.names", "default"): "Kafka wants it set; a single node needs none",
    ("log.roll.ms", "allowed"): "Kafka checks the same later",
    ("log.roll.jitter.ms", "allowed"): "Kafka checks the same later",
    ("compression.gzip.level", "allowed"): "the same, said by a range and a rule",
    ("follower.replication.throttled.replicas", "allowed"): "said by a rule",
    ("leader.replication.throttled.replicas", "allowed"): "said by a rule",
    ("authorizer.class.name", "allowed"): "only none: there is no access control",
    ("security.inter.broker.protocol", "allowed"): "only PLAINTEXT so far",
    ("replica.selector.class", "allowed"): "Kafka's own classes: others cannot be loaded",
    ("group.consumer.migration.policy", "allowed"): "the same words, written small",
    ("controller.quorum.bootstrap.servers", "allowed"): "Kafka's list may be empty, too",
    ("controller.quorum.voters", "allowed"): "Kafka's list may be empty, too",
}


class Fact(NamedTuple):
    resource: str
    name: str
    type: str
    default: str
    allowed: str
    internal: str
    update: str


def _facts() -> list[Fact]:
    lines = Path(__file__).with_name("kafka_settings.txt").read_text().splitlines()
    return [Fact(*line.split("|")) for line in lines if not line.startswith("#")]


FACTS = _facts()
BROKER_FACTS = {fact.name: fact for fact in FACTS if fact.resource == "BROKER"}
TOPIC_FACTS = {fact.name: fact for fact in FACTS if fact.resource == "TOPIC"}


def our_allowed(setting: Setting) -> str:
    """In the notation of the facts."""
    if setting.one_of:
        return f"[{', '.join(setting.one_of)}]"
    if setting.at_least is not None and setting.at_most is not None:
        return f"[{setting.at_least},...,{setting.at_most}]"
    return "NULL" if setting.at_least is None else f"[{setting.at_least},...]"


def differences(setting: Setting, fact: Fact) -> list[str]:
    ours = {
        "type": setting.type.name,
        "default": str(format_value(setting.default)),
        "allowed": our_allowed(setting),
    }
    theirs = {
        "type": fact.type,
        "default": "None" if fact.default.upper() == "NULL" else fact.default,
        "allowed": fact.allowed or "NULL",
    }
    return [
        f"{setting.name} {what}: {ours[what]}, in Kafka {theirs[what]}"
        for what in ours
        if ours[what] != theirs[what] and (setting.name, what) not in EXPLAINED
    ]


def test_every_topic_setting_of_kafka_is_here() -> None:
    assert set(TOPIC_SETTINGS) == set(TOPIC_FACTS)


@pytest.mark.parametrize("name", TOPIC_SETTINGS)
def test_a_topic_setting_is_as_in_kafka(name: str) -> None:
    setting, fact = TOPIC_SETTINGS[name], TOPIC_FACTS[name]
    assert not differences(setting, fact)
    assert setting.is_internal == (fact.internal == "true")


@pytest.mark.parametrize("name", BROKER_SETTINGS)
def test_a_broker_setting_is_as_in_kafka(name: str) -> None:
    setting = BROKER_SETTINGS[name]
    if name.startswith("tidelog.") or name in OUR_OWN:
        assert name not in BROKER_FACTS
        return
    fact = BROKER_FACTS[name]
    assert not differences(setting, fact)
    assert setting.update.value == fact.update


def test_every_explained_difference_is_one() -> None:
    """An explanation whose difference is gone must go, too."""
    settings = {**TOPIC_SETTINGS, **BROKER_SETTINGS}
    for name, what in EXPLAINED:
        fact = BROKER_FACTS.get(name) or TOPIC_FACTS[name]
        setting = settings[name]
        if what == "default":
            assert str(format_value(setting.default)) != fact.default, name
        else:
            assert our_allowed(setting) != fact.allowed, name


def test_a_synonym_is_a_broker_setting_of_the_same_kind() -> None:
    for topic_name, synonyms in BROKER_SYNONYMS.items():
        for synonym in synonyms:
            broker_type = BROKER_SETTINGS[synonym.name].type
            same = {TOPIC_SETTINGS[topic_name].type, SettingType.INT}
            assert broker_type in same, synonym


@pytest.mark.parametrize("setting", [*TOPIC_SETTINGS.values(), *BROKER_SETTINGS.values()])
def test_a_default_is_allowed_and_survives_its_text(setting: Setting) -> None:
    text = format_value(setting.default)
    if text is not None:
        assert setting.parse(text) == setting.default


def test_every_setting_is_explained_in_a_sentence() -> None:
    for setting in [*TOPIC_SETTINGS.values(), *BROKER_SETTINGS.values()]:
        assert re.search(r"\w.*[.]$", setting.about), setting.name
