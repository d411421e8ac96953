"""Every value that a topic may be given makes a log: none stops the broker."""

from __future__ import annotations

import pytest

from tidelog.core.model.broker_config import BROKER_SETTINGS
from tidelog.core.model.config import SettingType
from tidelog.core.model.config_resolution import NO_LAYERS, inherited_topic_values, topic_values
from tidelog.core.model.topic_config import TOPIC_SETTINGS
from tidelog.core.node.replicas.log_settings import log_config

BROKER_DEFAULTS = {name: setting.default for name, setting in BROKER_SETTINGS.items()}
NUMBERS = (SettingType.INT, SettingType.LONG, SettingType.SHORT)
LEAST = [
    (name, str(setting.at_least))
    for name, setting in TOPIC_SETTINGS.items()
    if setting.at_least is not None and setting.type in NUMBERS
]


@pytest.mark.parametrize(("name", "text"), LEAST)
def test_the_least_value_of_every_setting_makes_a_log(name: str, text: str) -> None:
    values = topic_values({name: text}, inherited_topic_values(NO_LAYERS))

    log_config(values, BROKER_DEFAULTS)


def test_an_index_smaller_than_two_entries_gets_room_for_two() -> None:
    values = topic_values({"segment.index.bytes": "4"}, inherited_topic_values(NO_LAYERS))

    assert log_config(values, BROKER_DEFAULTS).segment_index_bytes == 24


def test_endless_is_told_as_none() -> None:
    values = topic_values({"retention.ms": "-1"}, inherited_topic_values(NO_LAYERS))
    config = log_config(values, BROKER_DEFAULTS)

    assert config.retention_ms is None
    assert config.retention_bytes is None
    assert config.flush_messages is None
