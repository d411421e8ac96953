"""Settings of single groups: what they may be, and what a group without them has."""

from __future__ import annotations

import pytest

from tidelog.core.model.broker_config import BROKER_SETTINGS
from tidelog.core.model.config import ConfigSource
from tidelog.core.model.config_resolution import (
    NO_LAYERS,
    BrokerLayers,
    SettingRules,
    resolve_group_config,
)
from tidelog.core.model.group_config import GROUP_BOUNDS, GROUP_SETTINGS, group_values

SESSION, HEARTBEAT, ASSIGNMENT = GROUP_SETTINGS


def test_the_broker_settings_behind_them_exist() -> None:
    for name, bounds in GROUP_BOUNDS.items():
        for each in bounds:
            assert BROKER_SETTINGS[each].has_effect, each
        assert BROKER_SETTINGS[bounds.synonym].default == GROUP_SETTINGS[name].default


@pytest.mark.parametrize(
    ("settings", "is_fine"),
    [
        ({}, True),
        ({SESSION: "45000"}, True),
        ({SESSION: "44999"}, False),
        ({SESSION: "60000"}, True),
        ({SESSION: "60001"}, False),
        ({HEARTBEAT: "4999"}, False),
        ({HEARTBEAT: "15000"}, True),
        ({ASSIGNMENT: "0"}, True),
        ({ASSIGNMENT: "-1"}, False),
        ({ASSIGNMENT: "15001"}, False),
        ({SESSION: "soon"}, False),
        ({"share.session.timeout.ms": "45000"}, False),
    ],
)
def test_bounds(settings: dict[str, str], *, is_fine: bool) -> None:
    assert (SettingRules(NO_LAYERS).refuse_group_settings(settings) is None) is is_fine


def test_bounds_are_the_brokers() -> None:
    layers = BrokerLayers({}, {}, {"group.consumer.min.session.timeout.ms": "4000"})
    rules = SettingRules(layers)
    assert rules.refuse_group_settings({SESSION: "6000"}) is None
    reason = rules.refuse_group_settings({SESSION: "5000"})
    assert reason is not None and "greater" in reason, "no longer than between two heartbeats"


def test_a_group_without_settings_has_its_brokers() -> None:
    layers = BrokerLayers({}, {}, {"group.consumer.session.timeout.ms": "50000"})
    resolved = resolve_group_config({HEARTBEAT: "6000"}, layers)
    assert (resolved[SESSION].text, resolved[SESSION].source) == (
        "50000",
        ConfigSource.STATIC_BROKER,
    )
    assert (resolved[HEARTBEAT].text, resolved[HEARTBEAT].source) == ("6000", ConfigSource.GROUP)
    assert resolved[ASSIGNMENT].source is ConfigSource.DEFAULT


def test_what_another_release_wrote_is_passed_over() -> None:
    assert group_values({SESSION: "soon", "later.setting": "1", HEARTBEAT: "7000"}) == {
        HEARTBEAT: 7_000
    }
