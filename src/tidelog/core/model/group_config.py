"""Settings of single groups of consumers, with Kafka's names, types and limits.

A group without one has its broker's setting. What a group may have is bounded by broker settings.
Kafka has more of them for share groups and for groups of Streams, which do not exist here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from tidelog.core.model.config import BadSetting, Setting, SettingType

SESSION_TIMEOUT: Final = "consumer.session.timeout.ms"
HEARTBEAT_INTERVAL: Final = "consumer.heartbeat.interval.ms"
ASSIGNMENT_INTERVAL: Final = "consumer.assignment.interval.ms"


class GroupBounds(NamedTuple):
    """Broker settings that stand behind a group's: its value elsewhere, the least, the most."""

    synonym: str
    least: str
    most: str


def _setting(name: str, default: int, about: str, at_least: int) -> Setting:
    return Setting(name=name, type=SettingType.INT, default=default, about=about, at_least=at_least)


GROUP_SETTINGS: Final[Mapping[str, Setting]] = {
    setting.name: setting
    for setting in (
        _setting(SESSION_TIMEOUT, 45_000, "How long a member may be silent.", 1),
        _setting(HEARTBEAT_INTERVAL, 5_000, "How often members are asked for heartbeats.", 1),
        _setting(ASSIGNMENT_INTERVAL, 1_000, "Time between two assignments, at least.", 0),
    )
}

GROUP_BOUNDS: Final[Mapping[str, GroupBounds]] = {
    name: GroupBounds(
        f"group.{name}",
        f"group.consumer.min.{name.removeprefix('consumer.')}",
        f"group.consumer.max.{name.removeprefix('consumer.')}",
    )
    for name in GROUP_SETTINGS
}


def group_values(settings: Mapping[str, str]) -> dict[str, int]:
    """The values of a group's own settings; one that does not parse is passed over."""
    values = {}
    for name, text in settings.items():
        setting = GROUP_SETTINGS.get(name)
        if setting is not None:
            try:
                value = setting.parse(text)
            except BadSetting:
                continue
            assert isinstance(value, int), name
            values[name] = value
    return values


def refuse_group_settings(
    settings: Mapping[str, str], broker_value: Callable[[str], int]
) -> str | None:
    """Why a group cannot have exactly these settings of its own."""
    for name, text in settings.items():
        if name not in GROUP_SETTINGS:
            return f"unknown setting {name}"
        try:
            value = GROUP_SETTINGS[name].parse(text)
        except BadSetting as bad:
            return str(bad)
        assert isinstance(value, int), name
        _, least, most = GROUP_BOUNDS[name]
        if value < broker_value(least):
            return f"{name} must be at least {least}"
        if value > broker_value(most):
            return f"{name} must be at most {most}"
    values = group_values(settings)
    session_ms, heartbeat_ms = (
        values.get(name, broker_value(GROUP_BOUNDS[name].synonym))
        for name in (SESSION_TIMEOUT, HEARTBEAT_INTERVAL)
    )
    if session_ms <= heartbeat_ms:
        return f"{SESSION_TIMEOUT} must be greater than {HEARTBEAT_INTERVAL}"
    return None
