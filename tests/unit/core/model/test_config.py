"""Settings: what is taken, what is refused with which reason, and how values are printed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.core.model.config import (
    BadSetting,
    Setting,
    SettingType,
    Value,
    as_text,
    format_double,
    format_value,
)
from tidelog.core.model.topic_config import TOPIC_SETTINGS, refuse_topic_settings


def setting(type_: SettingType, **limits: object) -> Setting:
    return Setting(name="x", type=type_, default=None, about="", **limits)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (SettingType.BOOLEAN, " True ", True),
        (SettingType.BOOLEAN, "FALSE", False),
        (SettingType.INT, "+7", 7),
        (SettingType.INT, " -2147483648", -(2**31)),
        (SettingType.INT, "2147483647", 2**31 - 1),
        (SettingType.INT, "007", 7),
        (SettingType.SHORT, "32767", 2**15 - 1),
        (SettingType.LONG, "9223372036854775807", 2**63 - 1),
        (SettingType.DOUBLE, "0.5", 0.5),
        (SettingType.DOUBLE, "1e3", 1000.0),
        (SettingType.DOUBLE, ".5f", 0.5),
        (SettingType.DOUBLE, "3", 3.0),
        (SettingType.STRING, "  a b ", "a b"),
        (SettingType.LIST, "", ()),
        (SettingType.LIST, " a , b,c ", ("a", "b", "c")),
    ],
)
def test_a_text_becomes_its_value(type_: SettingType, text: str, value: Value) -> None:
    assert setting(type_).parse(text) == value


@pytest.mark.parametrize(
    ("type_", "text", "reason"),
    [
        (SettingType.BOOLEAN, "yes", "true or false"),
        (SettingType.BOOLEAN, "", "true or false"),
        (SettingType.INT, "2147483648", "32 bits"),
        (SettingType.INT, "1_000", "32 bits"),
        (SettingType.INT, "1.0", "32 bits"),
        (SettingType.INT, "", "32 bits"),
        (SettingType.INT, "٣", "32 bits"),
        (SettingType.INT, "9" * 5_000, "32 bits"),
        (SettingType.SHORT, "32768", "16 bits"),
        (SettingType.LONG, "-9223372036854775809", "64 bits"),
        (SettingType.DOUBLE, "half", "a number"),
        (SettingType.DOUBLE, "NaN", "a number"),
        (SettingType.LIST, "a,,b", "empty item"),
        (SettingType.LIST, "a,a", "twice"),
    ],
)
def test_a_bad_text_is_refused_with_what_is_allowed(
    type_: SettingType, text: str, reason: str
) -> None:
    with pytest.raises(BadSetting, match=reason):
        setting(type_).parse(text)


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("segment.bytes", "1048575", "at least 1048576"),
        ("retention.ms", "-2", "at least -1"),
        ("min.cleanable.dirty.ratio", "1.1", "from 0 to 1"),
        ("cleanup.policy", "delete,forget", "compact, delete"),
        ("cleanup.policy", "delete,delete", "twice"),
        ("compression.type", "GZIP", "one of uncompressed, zstd, lz4, snappy, gzip, producer"),
        ("compression.type", "none", "one of"),
        ("compression.gzip.level", "0", "-1, or from 1 to 9"),
        ("compression.gzip.level", "10", "from -1 to 9"),
        ("compression.lz4.level", "18", "from 1 to 17"),
        ("message.timestamp.type", "createtime", "CreateTime, LogAppendTime"),
        ("min.insync.replicas", "0", "at least 1"),
        ("leader.replication.throttled.replicas", "1:2,x", "partition and broker"),
    ],
)
def test_a_topic_setting_refuses_what_kafka_refuses(name: str, text: str, reason: str) -> None:
    with pytest.raises(BadSetting, match=reason):
        TOPIC_SETTINGS[name].parse(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("cleanup.policy", ""),
        ("cleanup.policy", "compact, delete"),
        ("retention.bytes", "-5"),
        ("max.message.bytes", "0"),
        ("compression.gzip.level", "-1"),
        ("leader.replication.throttled.replicas", "*"),
        ("leader.replication.throttled.replicas", "0:1,0:1"),
        ("internal.segment.bytes", "100"),
    ],
)
def test_a_topic_setting_takes_what_kafka_takes(name: str, text: str) -> None:
    TOPIC_SETTINGS[name].parse(text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, None),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-1, "-1"),
        ("", ""),
        (("a", "b"), "a,b"),
        ((), ""),
        (0.5, "0.5"),
        (0.0, "0.0"),
        (1e7, "1.0E7"),
        (9999999.0, "9999999.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (-12345678.9, "-1.23456789E7"),
        (1.7976931348623157e308, "1.7976931348623157E308"),
    ],
)
def test_a_value_is_printed_as_java_prints_it(value: Value, text: str | None) -> None:
    assert format_value(value) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_number_reads_back(number: float) -> None:
    assert float(format_double(number)) == number


def test_typed_files_give_the_same_text() -> None:
    assert as_text("x", True) == "true"
    assert as_text("x", 5) == "5"
    assert as_text("x", 0.5) == "0.5"
    assert as_text("x", ["a", "b"]) == "a,b"
    with pytest.raises(BadSetting, match="must be text"):
        as_text("x", {"a": 1})


INHERITED: dict[str, Value] = {name: each.default for name, each in TOPIC_SETTINGS.items()}


@pytest.mark.parametrize(
    ("overrides", "reason"),
    [
        ({"retention": "1"}, "no setting retention"),
        ({"retention.ms": "soon"}, "retention.ms=soon"),
        ({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "8"}, "above"),
        ({"remote.storage.enable": "true"}, "tiered"),
    ],
)
def test_settings_that_do_not_go_together_are_refused(
    overrides: dict[str, str], reason: str
) -> None:
    assert reason in (refuse_topic_settings(overrides, INHERITED) or "")


def test_a_topic_is_judged_together_with_what_it_inherits() -> None:
    lag = {"min.compaction.lag.ms": "9"}
    assert refuse_topic_settings(lag, INHERITED) is None
    assert refuse_topic_settings(lag, {**INHERITED, "max.compaction.lag.ms": 8}) is not None
