"""Settings as data: a name, a type, a default, what is allowed, and what it does.

Values come as text (a configuration file, a request, the metadata log) and leave as text (the
answer that describes them); in between they are typed. Every refusal says what would be allowed.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from enum import Enum, IntEnum
from typing import NamedTuple

from tidelog.core.model.exceptions import TidelogError

Value = bool | int | float | str | tuple[str, ...] | None


class SettingType(IntEnum):
    """Kafka's types, by the numbers that stand in answers."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigSource(IntEnum):
    """Where a value comes from, by the numbers that stand in answers; nearer ones come first."""

    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_CLUSTER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    BROKER_LOGGER = 6
    GROUP = 8


class Update(Enum):
    """Whether a broker's setting may change while it runs, and for whom."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


class BadSetting(TidelogError):
    """A value that its setting does not take."""

    def __init__(self, name: str, text: str, reason: str) -> None:
        super().__init__(f"{name}={text}: {reason}")
        self.name = name
        self.text = text
        self.reason = reason


_BITS = {SettingType.SHORT: 16, SettingType.INT: 32, SettingType.LONG: 64}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?")
_COMMA = re.compile(r"\s*,\s*")


class Setting(NamedTuple):
    """One setting; the tables of them are in topic_config.py and broker_settings.py.

    A tuple, because a data class of this size would cost a starting broker three milliseconds.
    """

    name: str
    type: SettingType
    default: Value
    about: str
    at_least: int | float | None = None
    at_most: int | float | None = None
    one_of: tuple[str, ...] = ()
    """The words that a string, or each item of a list, may be."""
    ignores_case: bool = False
    may_be_empty: bool = True
    """Of a list: no item at all is fine."""
    may_repeat: bool = False
    """Of a list: the same item twice is fine."""
    rule: Callable[[Value], str | None] | None = None
    """What the fields above cannot say: the reason why this value is refused."""
    update: Update = Update.READ_ONLY
    is_internal: bool = False
    """Works, but DescribeConfigs does not show it."""
    has_effect: bool = True
    """False: taken so that a configuration written for Kafka loads, and then left alone."""

    def parse(self, text: str) -> Value:
        """The typed value of `text`; BadSetting says what is allowed instead."""
        value = self._typed(text.strip(), text)
        reason = self._refuse(value)
        if reason is not None:
            raise BadSetting(self.name, text, reason)
        return value

    def format(self, value: Value) -> str | None:
        """As Kafka prints it; None where there is no value."""
        return format_value(value)

    @property
    def is_secret(self) -> bool:
        """Its value is shown to nobody."""
        return self.type == SettingType.PASSWORD

    def allowed(self) -> str:
        """What a value must be, in words."""
        kind = _KINDS[self.type]
        if self.one_of:
            words = ", ".join(self.one_of)
            return f"a list of {words}" if self.type == SettingType.LIST else f"one of {words}"
        if self.at_least is not None and self.at_most is not None:
            return f"{kind} from {self.at_least} to {self.at_most}"
        if self.at_least is not None:
            return f"{kind}, at least {self.at_least}"
        return kind

    def _typed(self, trimmed: str, text: str) -> Value:
        if self.type == SettingType.BOOLEAN:
            if trimmed.lower() in ("true", "false"):
                return trimmed.lower() == "true"
        elif self.type in _BITS:
            bits = _BITS[self.type]
            if _INTEGER.fullmatch(trimmed) and len(trimmed) < bits:
                number = int(trimmed)
                if -(2 ** (bits - 1)) <= number < 2 ** (bits - 1):
                    return number
        elif self.type == SettingType.DOUBLE:
            if _DECIMAL.fullmatch(trimmed):
                return float(trimmed.rstrip("dDfF"))
        elif self.type == SettingType.LIST:
            return tuple(_COMMA.split(trimmed)) if trimmed else ()
        else:
            return trimmed
        raise BadSetting(self.name, text, f"must be {self.allowed()}")

    def _refuse(self, value: Value) -> str | None:
        if isinstance(value, tuple):
            reason = self._refuse_items(value)
        elif isinstance(value, str):
            reason = self._refuse_word(value)
        elif isinstance(value, int | float) and not self._is_in_range(value):
            reason = f"must be {self.allowed()}"
        else:
            reason = None
        if reason is None and self.rule is not None:
            reason = self.rule(value)
        return reason

    def _refuse_items(self, items: tuple[str, ...]) -> str | None:
        if not items and not self.may_be_empty:
            return "must have at least one item"
        if not self.may_repeat and len(set(items)) != len(items):
            return "has the same item twice"
        if not self.may_repeat and "" in items:
            return "has an empty item"
        return next((reason for reason in map(self._refuse_word, items) if reason), None)

    def _refuse_word(self, word: str) -> str | None:
        if not self.one_of:
            return None
        known = self.one_of
        if self.ignores_case:
            word, known = word.lower(), tuple(item.lower() for item in known)
        return None if word in known else f"must be {self.allowed()}"

    def _is_in_range(self, number: float) -> bool:
        if self.at_least is not None and number < self.at_least:
            return False
        return self.at_most is None or number <= self.at_most


_KINDS = {
    SettingType.BOOLEAN: "true or false",
    SettingType.STRING: "text",
    SettingType.INT: "a whole number of 32 bits",
    SettingType.SHORT: "a whole number of 16 bits",
    SettingType.LONG: "a whole number of 64 bits",
    SettingType.DOUBLE: "a number",
    SettingType.LIST: "items separated by commas",
    SettingType.CLASS: "the name of a class",
    SettingType.PASSWORD: "a password",
}


def table(settings: Iterable[Setting]) -> dict[str, Setting]:
    """The settings by name, in the order of their names."""
    return {setting.name: setting for setting in sorted(settings, key=lambda each: each.name)}


def format_value(value: Value) -> str | None:
    """A typed value as Kafka prints it."""
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(value)
    return format_double(value) if isinstance(value, float) else str(value)


def format_double(number: float) -> str:
    """As Java writes it: plain from a thousandth to ten millions, `d.dddE±n` otherwise."""
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    mantissa, _, power = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    exponent = len(whole) - (len(whole + fraction) - len(digits)) + int(power or 0) - 1
    digits = digits.rstrip("0")
    return f"{'-' if number < 0 else ''}{digits[0]}.{digits[1:] or '0'}E{exponent}"


def as_text(name: str, raw: object) -> str:
    """The text of a value from a typed configuration file: `true`, 5, 0.5, or a list of texts."""
    if isinstance(raw, str):
        return raw
    if isinstance(raw, bool | int | float):
        return format_value(raw) or ""
    if isinstance(raw, list | tuple) and all(isinstance(item, str | int) for item in raw):
        return ",".join(as_text(name, item) for item in raw)
    raise BadSetting(name, repr(raw), "must be text, a number, true, false, or a list of texts")
