"""The options of a source: names, meanings and defaults of Spark's Kafka source, checked at once.

They come with lower-case names, since Spark ignores case. A wrong option is an OptionError that
names it; an option without effect is a warning.

Options that begin with `kafka.` are settings of our client, without effect here, or refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tidelog.client.config import COMMON_SETTINGS
from tidelog.client.consumer.config import CONSUMER_SETTINGS
from tidelog.client.ranges.config import range_config
from tidelog.client.settings import ConfigError
from tidelog.core.model.ids import TopicPartition
from tidelog.spark.source.bounds import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTime,
    AtTimes,
    Bound,
    Edge,
    read_bound,
    read_partitions,
)
from tidelog.spark.source.errors import OptionError

PREFIX = "kafka."
BOOTSTRAP = "kafka.bootstrap.servers"
POLL_TIMEOUT_MS = 120_000
TRIGGER_DELAY_MS = 15 * 60_000
OFFSET_RETRIES = 3
OFFSET_RETRY_INTERVAL_MS = 1_000
_INT_MAX = 2**31 - 1
_LONG_MAX = 2**63 - 1
_ENDINGS = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
_TRIGGERS = ("maxOffsetsPerTrigger", "minOffsetsPerTrigger", "maxTriggerDelay")
_SUBSCRIPTIONS = ("subscribe", "subscribePattern", "assign")
_NAMES = (
    *(*_SUBSCRIPTIONS, *_ENDINGS, *_TRIGGERS),
    *("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets"),
    *("startingOffsetsByTimestampStrategy", "failOnDataLoss", "includeHeaders"),
    *("minPartitions", "maxRecordsPerPartition", "kafkaConsumer.pollTimeoutMs"),
    *("fetchOffset.numRetries", "fetchOffset.retryIntervalMs", "groupIdPrefix"),
)
_WITHOUT_EFFECT = {"groupidprefix": "this source joins no consumer group"}
_MINUTE_MS = 60_000
_UNITS_MS = {"us": 0.001, "ms": 1, "s": 1_000, "m": _MINUTE_MS, "min": _MINUTE_MS}
_UNITS_MS |= {"h": 60 * _MINUTE_MS, "d": 24 * 60 * _MINUTE_MS}
_PLAINTEXT = "PLAINTEXT"
_CLIENT_SETTINGS = frozenset(each.name for each in (*COMMON_SETTINGS, *CONSUMER_SETTINGS))
_ADMIN_SETTINGS = frozenset(each.name for each in COMMON_SETTINGS)
_AS_BYTES = "keys and values are read as bytes; convert them with column functions"
_REFUSED_SETTINGS = {
    "auto.offset.reset": "use startingOffsets: Spark, not the client, decides where reading starts",
    "key.deserializer": _AS_BYTES,
    "value.deserializer": _AS_BYTES,
    "enable.auto.commit": "Spark's checkpoint keeps the offsets, none are committed to Kafka",
    "interceptor.classes": "there are no interceptors here",
}
_SECURITY_PREFIXES = ("ssl.", "sasl.")


@dataclass(frozen=True, slots=True)
class Subscribe:
    """These topics, with all partitions that they have or get."""

    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SubscribePattern:
    """All topics in whose name the pattern is found."""

    pattern: str


@dataclass(frozen=True, slots=True)
class Assign:
    """These partitions and no others."""

    partitions: frozenset[TopicPartition]


Subscription = Subscribe | SubscribePattern | Assign


class ClientSettings(NamedTuple):
    """The settings for the client, and warnings for the user."""

    given: dict[str, str]
    warnings: tuple[str, ...]

    def of_admin(self) -> dict[str, str]:
        """Those that every client has, not only consumers."""
        return {name: text for name, text in self.given.items() if name in _ADMIN_SETTINGS}


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOptions:
    """All options of one source, checked."""

    subscription: Subscription
    client: ClientSettings
    start: Bound
    end: Bound
    """Of a batch; a stream has no end."""
    starts_at_latest_without_match: bool
    """`startingOffsetsByTimestampStrategy`, for a time after all records."""
    includes_headers: bool
    fails_on_data_loss: bool
    is_read_committed: bool
    partitions_min: int | None
    partition_records_max: int | None
    trigger_offsets_max: int | None
    trigger_offsets_min: int | None
    trigger_delay_max_ms: int
    poll_timeout_ms: int
    offset_retries: int
    offset_retry_interval_ms: int
    warnings: tuple[str, ...]


def batch_options(given: Mapping[str, str]) -> SourceOptions:
    """Of `spark.read`."""
    options = _lower(given)
    start = _start(options, Edge.EARLIEST)
    if start is Edge.LATEST or LATEST in _offsets(start):
        raise OptionError("startingOffsets may not be latest in a batch: nothing would be read")
    end = _end(options)
    if end is Edge.EARLIEST or EARLIEST in _offsets(end):
        raise OptionError("endingOffsets may not be earliest: nothing would be read")
    _refuse_backwards(start, end)
    ignored = [name for name in _TRIGGERS if name.lower() in options]
    return _source_options(
        options, start, end, [f"{name} has no effect on a batch" for name in ignored]
    )


def stream_options(given: Mapping[str, str]) -> SourceOptions:
    """Of `spark.readStream`."""
    options = _lower(given)
    for name in _ENDINGS:
        if name.lower() in options:
            raise OptionError(f"{name} is only for batches: a stream has no end")
    return _source_options(options, _start(options, Edge.LATEST), Edge.LATEST, [])


def check_options(given: Mapping[str, str]) -> SourceOptions:
    """Check what can be checked before it is known whether a batch or a stream is read."""
    options = _lower(given)
    return _source_options(options, _start(options, Edge.EARLIEST), _end(options), [])


def _lower(given: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): text for name, text in given.items()}


def _start(options: Mapping[str, str], default: Edge) -> Bound:
    return read_bound(
        options,
        time="startingTimestamp",
        times="startingOffsetsByTimestamp",
        offsets="startingOffsets",
        default=default,
    )


def _end(options: Mapping[str, str]) -> Bound:
    return read_bound(
        options,
        time="endingTimestamp",
        times="endingOffsetsByTimestamp",
        offsets="endingOffsets",
        default=Edge.LATEST,
    )


def _source_options(
    options: Mapping[str, str], start: Bound, end: Bound, warnings: list[str]
) -> SourceOptions:
    client = read_client_settings(options)
    trigger_offsets_max = _number(options, "maxOffsetsPerTrigger", at_most=_LONG_MAX)
    trigger_offsets_min = _number(options, "minOffsetsPerTrigger", at_most=_LONG_MAX)
    if (trigger_offsets_min or 0) > (trigger_offsets_max or _LONG_MAX):
        raise OptionError(
            f"minOffsetsPerTrigger ({trigger_offsets_min}) is more than"
            f" maxOffsetsPerTrigger ({trigger_offsets_max})"
        )
    poll_timeout_ms = _number(options, "kafkaConsumer.pollTimeoutMs", at_most=_LONG_MAX)
    retries = _number(options, "fetchOffset.numRetries", at_most=_INT_MAX)
    interval_ms = _number(options, "fetchOffset.retryIntervalMs", at_least=0, at_most=_INT_MAX)
    return SourceOptions(
        subscription=_subscription(options),
        client=client,
        start=start,
        end=end,
        starts_at_latest_without_match=_starts_at_latest(options),
        includes_headers=_flag(options, "includeHeaders", default=False),
        fails_on_data_loss=_flag(options, "failOnDataLoss", default=True),
        is_read_committed=client.given.get("isolation.level", "read_committed") == "read_committed",
        partitions_min=_number(options, "minPartitions", at_most=_INT_MAX),
        partition_records_max=_number(options, "maxRecordsPerPartition", at_most=_LONG_MAX),
        trigger_offsets_max=trigger_offsets_max,
        trigger_offsets_min=trigger_offsets_min,
        trigger_delay_max_ms=_duration_ms(options, "maxTriggerDelay", TRIGGER_DELAY_MS),
        poll_timeout_ms=POLL_TIMEOUT_MS if poll_timeout_ms is None else poll_timeout_ms,
        offset_retries=OFFSET_RETRIES if retries is None else retries,
        offset_retry_interval_ms=OFFSET_RETRY_INTERVAL_MS if interval_ms is None else interval_ms,
        warnings=(*warnings, *client.warnings, *_unknown(options)),
    )


def _subscription(options: Mapping[str, str]) -> Subscription:
    given = [name for name in _SUBSCRIPTIONS if name.lower() in options]
    if len(given) != 1:
        problem = f"both {' and '.join(given)} are given" if given else "none is given"
        raise OptionError(f"exactly one of {', '.join(_SUBSCRIPTIONS)} must be given: {problem}")
    [name] = given
    text = options[name.lower()]
    if name == "assign":
        return Assign(read_partitions(name, text))
    if name == "subscribe":
        topics = tuple(dict.fromkeys(each.strip() for each in text.split(",") if each.strip()))
        if not topics:
            raise OptionError(f"subscribe names no topic: {text!r}")
        return Subscribe(topics)
    pattern = text.strip()
    try:
        re.compile(pattern)
    except re.error as error:
        raise OptionError(
            f"subscribePattern {pattern!r} is not a regular expression: {error}"
        ) from None
    if not pattern:
        raise OptionError("subscribePattern is empty")
    return SubscribePattern(pattern)


def _offsets(bound: Bound) -> frozenset[int]:
    return frozenset(bound.offsets.values()) if isinstance(bound, AtOffsets) else frozenset()


def _refuse_backwards(start: Bound, end: Bound) -> None:
    """Check what can be checked without the cluster."""
    if isinstance(start, AtTime) and isinstance(end, AtTime):
        if start.timestamp_ms > end.timestamp_ms:
            raise OptionError("startingTimestamp is after endingTimestamp")
        return
    if isinstance(start, AtOffsets) and isinstance(end, AtOffsets):
        firsts, ends = start.offsets, end.offsets
    elif isinstance(start, AtTimes) and isinstance(end, AtTimes):
        firsts, ends = start.timestamps_ms, end.timestamps_ms
    else:
        return
    if firsts.keys() != ends.keys():
        odd = ", ".join(str(each) for each in sorted(firsts.keys() ^ ends.keys()))
        raise OptionError(f"{start.option} and {end.option} differ in their partitions: {odd}")
    for partition, first in firsts.items():
        if first > ends[partition] >= 0:
            raise OptionError(
                f"{start.option} of {partition} ({first}) is after its {end.option}"
                f" ({ends[partition]})"
            )


def _starts_at_latest(options: Mapping[str, str]) -> bool:
    name = "startingOffsetsByTimestampStrategy"
    word = options.get(name.lower(), "error").strip().lower()
    if word not in ("error", "latest"):
        raise OptionError(f"{name} must be error or latest, got {word!r}")
    return word == "latest"


def _flag(options: Mapping[str, str], name: str, *, default: bool) -> bool:
    text = options.get(name.lower())
    if text is None:
        return default
    if text.strip().lower() not in ("true", "false"):
        raise OptionError(f"{name} must be true or false, got {text!r}")
    return text.strip().lower() == "true"


def _number(
    options: Mapping[str, str], name: str, *, at_most: int, at_least: int = 1
) -> int | None:
    text = options.get(name.lower())
    if text is None:
        return None
    if not re.fullmatch(r"\s*\d{1,19}\s*", text) or not at_least <= int(text) <= at_most:
        raise OptionError(f"{name} must be a whole number, at least {at_least}, got {text!r}")
    return int(text)


def _duration_ms(options: Mapping[str, str], name: str, default_ms: int) -> int:
    """In Spark's notation: 500, 500ms, 30s, 15m, 2h, 1d."""
    text = options.get(name.lower())
    if text is None:
        return default_ms
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.strip().lower())
    unit_ms = _UNITS_MS.get(found.group(2) or "ms") if found is not None else None
    if found is None or unit_ms is None:
        raise OptionError(f"{name} must be a time like 500ms, 30s, 15m or 2h, got {text!r}")
    return int(int(found.group(1)) * unit_ms)


def _unknown(options: Mapping[str, str]) -> list[str]:
    """Spark accepts any option, so a misspelt one would otherwise go unnoticed."""
    known = {name.lower(): name for name in _NAMES}
    warnings = [
        f"{known[option]} has no effect: {reason}"
        for option, reason in _WITHOUT_EFFECT.items()
        if option in options
    ]
    for option in options:
        if option not in known and not option.startswith(PREFIX):
            near = difflib.get_close_matches(option, known, n=1)
            hint = f"; did you mean {known[near[0]]}?" if near else ""
            warnings.append(f"{option} is not an option of this source{hint}")
    return warnings


def read_client_settings(options: Mapping[str, str]) -> ClientSettings:
    """`options` have lower-case names; those without `kafka.` are ignored."""
    if not options.get(BOOTSTRAP, "").strip():
        raise OptionError(f"{BOOTSTRAP} must be given: host:port, or several separated by commas")
    given: dict[str, str] = {}
    warnings: list[str] = []
    for option, text in options.items():
        if not option.startswith(PREFIX):
            continue
        name = option.removeprefix(PREFIX)
        if name in _REFUSED_SETTINGS:
            raise OptionError(f"{option} is not supported: {_REFUSED_SETTINGS[name]}")
        if name.startswith(_SECURITY_PREFIXES) or (
            name == "security.protocol" and text.strip().upper() != _PLAINTEXT
        ):
            raise OptionError(f"{option} is not supported: connections are PLAINTEXT so far")
        if name in _CLIENT_SETTINGS:
            given[name] = text
        elif name != "security.protocol":
            warnings.append(f"{option} has no effect on format tidelog")
    try:
        range_config(given)
    except ConfigError as error:
        raise OptionError(f"{PREFIX}{error}") from None
    return ClientSettings(given, tuple(warnings))
