"""Settings of clients: Kafka's names and defaults, read from what a program gives.

A program gives text, numbers or booleans by name. A name that nobody knows is refused, where Java
only warns: there is no log here to warn in.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import cast

from tidelog.core.model.config import (
    BadSetting,
    Setting,
    SettingType,
    Value,
    as_text,
    table,
)
from tidelog.core.model.exceptions import TidelogError

INT = SettingType.INT
LONG = SettingType.LONG
STRING = SettingType.STRING
BOOLEAN = SettingType.BOOLEAN
LIST = SettingType.LIST

Given = Mapping[str, str | int | float | bool | list[str]]


class ConfigError(TidelogError):
    """Settings that a client does not start with; the message says what would be right."""


class Values:
    """Checked values by name; `was_given` tells a chosen value from a default."""

    def __init__(self, settings: Iterable[Setting], given: Given) -> None:
        known = table(settings)
        self._values: dict[str, Value] = {name: each.default for name, each in known.items()}
        self._given = frozenset(given)
        for name, raw in given.items():
            setting = known.get(name)
            if setting is None:
                raise ConfigError(f"{name} is not a setting of this client")
            try:
                self._values[name] = setting.parse(as_text(name, raw))
            except BadSetting as bad:
                raise ConfigError(f"{name}={bad.text!r} is refused: {bad.reason}") from None

    def was_given(self, name: str) -> bool:
        return name in self._given

    def number(self, name: str) -> int:
        return cast(int, self._values[name])

    def text(self, name: str) -> str:
        return cast(str, self._values[name])

    def flag(self, name: str) -> bool:
        return cast(bool, self._values[name])

    def items(self, name: str) -> tuple[str, ...]:
        return cast("tuple[str, ...]", self._values[name])
