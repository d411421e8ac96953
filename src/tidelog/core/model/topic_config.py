"""The settings of a topic: all of Kafka's, with its names, types, defaults and limits.

A topic has only the settings that it was given; the others come from its brokers, where most of
them have another name (`BROKER_SYNONYMS`), and from the defaults here when no broker has any.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from tidelog.core.model.config import BadSetting, Setting, SettingType, Value, table
from tidelog.core.model.limits import BATCH_BYTES_MAX, INT64_MAX, MIB

MINUTE_MS = 60 * 1_000
HOUR_MS = 60 * MINUTE_MS
DAY_MS = 24 * HOUR_MS
UNLIMITED = -1

CODEC_WORDS = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPES = ("CreateTime", "LogAppendTime")
CLEANUP_POLICIES = ("compact", "delete")

_THROTTLED = re.compile(r"([0-9]+:[0-9]+)?")


def gzip_level_rule(value: Value) -> str | None:
    return None if value != 0 else "must be -1, or from 1 to 9"


def throttled_replicas_rule(value: Value) -> str | None:
    assert isinstance(value, tuple)
    if value == ("*",) or all(_THROTTLED.fullmatch(item) for item in value):
        return None
    return "must be *, or items like 0:1 (partition and broker)"


def _int(name: str, default: int | None, about: str, at_least: int | None = None) -> Setting:
    return Setting(name=name, type=SettingType.INT, default=default, about=about, at_least=at_least)


def _long(name: str, default: int, about: str, at_least: int | None = None) -> Setting:
    return Setting(
        name=name, type=SettingType.LONG, default=default, about=about, at_least=at_least
    )


def _boolean(name: str, about: str) -> Setting:
    return Setting(name=name, type=SettingType.BOOLEAN, default=False, about=about)


def _throttled(name: str, about: str) -> Setting:
    return Setting(
        name=name,
        type=SettingType.LIST,
        default=(),
        about=about,
        may_repeat=True,
        rule=throttled_replicas_rule,
    )


_SEGMENTS = (
    _int(
        "segment.bytes",
        2**30,
        "A segment file that would grow beyond this is closed, and a new one begun.",
        at_least=1 * MIB,
    ),
    _long(
        "segment.ms",
        7 * DAY_MS,
        "A segment whose first record is older than this is closed even if it is small.",
        at_least=1,
    ),
    _long(
        "segment.jitter.ms",
        0,
        "Up to so much is taken off segment.ms by chance, so that segments close one by one.",
        at_least=0,
    ),
    _int(
        "segment.index.bytes",
        10 * MIB,
        "An index file that has this size closes its segment.",
        at_least=4,
    ),
    _int(
        "index.interval.bytes",
        4096,
        "Bytes of records between two entries of the offset index.",
        at_least=0,
    ),
    _long(
        "file.delete.delay.ms",
        1 * MINUTE_MS,
        "How long a removed segment's files stay on disk under another name.",
        at_least=0,
    ),
    _boolean("preallocate", "Whether Kafka reserves a new segment's space; no effect in Tidelog."),
    Setting(
        name="internal.segment.bytes",
        type=SettingType.INT,
        default=None,
        about="Overrides segment.bytes without its lower limit: for tests.",
        is_internal=True,
    ),
)

_RETENTION = (
    Setting(
        name="cleanup.policy",
        type=SettingType.LIST,
        default=("delete",),
        about="What happens to old segments: delete them, compact them by key, or both.",
        one_of=CLEANUP_POLICIES,
    ),
    _long("retention.ms", 7 * DAY_MS, "Older records may be deleted; -1 keeps them.", at_least=-1),
    _long("retention.bytes", UNLIMITED, "Per partition; oldest segments go first; -1: no limit."),
    _long(
        "delete.retention.ms",
        1 * DAY_MS,
        "How long compaction keeps a tombstone, so that readers have time to see it.",
        at_least=0,
    ),
    _long("min.compaction.lag.ms", 0, "Younger records are left out of compaction.", at_least=0),
    _long(
        "max.compaction.lag.ms",
        INT64_MAX,
        "Older records must have been looked at by compaction.",
        at_least=1,
    ),
    Setting(
        name="min.cleanable.dirty.ratio",
        type=SettingType.DOUBLE,
        default=0.5,
        about="The share of a log not yet compacted from which on compacting it pays.",
        at_least=0,
        at_most=1,
    ),
)

_RECORDS = (
    _int(
        "max.message.bytes",
        BATCH_BYTES_MAX,
        "The largest record batch, as compressed by its producer, that is taken.",
        at_least=0,
    ),
    Setting(
        name="compression.type",
        type=SettingType.STRING,
        default="producer",
        about="The codec of batches on disk; `producer` keeps each as it came.",
        one_of=CODEC_WORDS,
    ),
    Setting(
        name="compression.gzip.level",
        type=SettingType.INT,
        default=-1,
        about="For compression.type=gzip; -1 leaves the choice to zlib.",
        at_least=-1,
        at_most=9,
        rule=gzip_level_rule,
    ),
    Setting(
        name="compression.lz4.level",
        type=SettingType.INT,
        default=9,
        about="For compression.type=lz4; 9, the default, is the fast one.",
        at_least=1,
        at_most=17,
    ),
    Setting(
        name="compression.zstd.level",
        type=SettingType.INT,
        default=3,
        about="For compression.type=zstd; negative levels are faster and pack less.",
        at_least=-131072,
        at_most=22,
    ),
    Setting(
        name="message.timestamp.type",
        type=SettingType.STRING,
        default="CreateTime",
        about="Whether a record carries its producer's time or the time of the append.",
        one_of=TIMESTAMP_TYPES,
    ),
    _long(
        "message.timestamp.before.max.ms",
        INT64_MAX,
        "A record's own time may lie so far before the broker's.",
        at_least=0,
    ),
    _long(
        "message.timestamp.after.max.ms",
        1 * HOUR_MS,
        "A record's own time may lie so far after the broker's.",
        at_least=0,
    ),
)

_REPLICATION = (
    _int(
        "min.insync.replicas",
        1,
        "With fewer replicas in sync, writes with acks=all are refused.",
        at_least=1,
    ),
    _boolean(
        "unclean.leader.election.enable",
        "Whether a replica that may miss acknowledged records can lead when no other is left.",
    ),
    _long("flush.messages", INT64_MAX, "Records between two syncs to disk.", at_least=1),
    _long("flush.ms", INT64_MAX, "Time between two syncs to disk.", at_least=0),
    _throttled(
        "leader.replication.throttled.replicas",
        "The replicas whose copying is slowed down on the leader's side.",
    ),
    _throttled(
        "follower.replication.throttled.replicas",
        "The replicas whose copying is slowed down on the follower's side.",
    ),
)

_TIERED = (
    _boolean("remote.storage.enable", "Tiered storage; Tidelog has none, so only false is taken."),
    _boolean("remote.log.copy.disable", "Of tiered storage; no effect in Tidelog."),
    _boolean("remote.log.delete.on.disable", "Of tiered storage; no effect in Tidelog."),
    _long("local.retention.ms", -2, "Of tiered storage; -2 follows retention.ms.", at_least=-2),
    _long(
        "local.retention.bytes", -2, "Of tiered storage; -2 follows retention.bytes.", at_least=-2
    ),
)

TOPIC_SETTINGS = table(_SEGMENTS + _RETENTION + _RECORDS + _REPLICATION + _TIERED)


class Synonym(NamedTuple):
    """A broker's name for a topic's setting; `factor` turns its unit into the topic's."""

    name: str
    factor: int = 1


def _named(topic_name: str, *names: str) -> tuple[str, tuple[Synonym, ...]]:
    return topic_name, tuple(Synonym(name) for name in names)


BROKER_SYNONYMS: dict[str, tuple[Synonym, ...]] = dict(
    (
        _named("segment.bytes", "log.segment.bytes"),
        ("segment.ms", (Synonym("log.roll.ms"), Synonym("log.roll.hours", HOUR_MS))),
        (
            "segment.jitter.ms",
            (Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", HOUR_MS)),
        ),
        _named("segment.index.bytes", "log.index.size.max.bytes"),
        _named("flush.messages", "log.flush.interval.messages"),
        _named("flush.ms", "log.flush.interval.ms", "log.flush.scheduler.interval.ms"),
        _named("retention.bytes", "log.retention.bytes"),
        (
            "retention.ms",
            (
                Synonym("log.retention.ms"),
                Synonym("log.retention.minutes", MINUTE_MS),
                Synonym("log.retention.hours", HOUR_MS),
            ),
        ),
        _named("max.message.bytes", "message.max.bytes"),
        _named("index.interval.bytes", "log.index.interval.bytes"),
        _named("delete.retention.ms", "log.cleaner.delete.retention.ms"),
        _named("min.compaction.lag.ms", "log.cleaner.min.compaction.lag.ms"),
        _named("max.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
        _named("file.delete.delay.ms", "log.segment.delete.delay.ms"),
        _named("min.cleanable.dirty.ratio", "log.cleaner.min.cleanable.ratio"),
        _named("cleanup.policy", "log.cleanup.policy"),
        _named("unclean.leader.election.enable", "unclean.leader.election.enable"),
        _named("min.insync.replicas", "min.insync.replicas"),
        _named("compression.type", "compression.type"),
        _named("compression.gzip.level", "compression.gzip.level"),
        _named("compression.lz4.level", "compression.lz4.level"),
        _named("compression.zstd.level", "compression.zstd.level"),
        _named("preallocate", "log.preallocate"),
        _named("message.timestamp.type", "log.message.timestamp.type"),
        _named("message.timestamp.before.max.ms", "log.message.timestamp.before.max.ms"),
        _named("message.timestamp.after.max.ms", "log.message.timestamp.after.max.ms"),
        _named("local.retention.ms", "log.local.retention.ms"),
        _named("local.retention.bytes", "log.local.retention.bytes"),
    )
)
"""In the order of preference: the first one that has a value counts."""

assert set(BROKER_SYNONYMS) <= set(TOPIC_SETTINGS)


def refuse_topic_settings(
    overrides: Mapping[str, str], brokers_values: Mapping[str, Value]
) -> str | None:
    """Why a topic cannot have these settings above those of its brokers; None if it can."""
    unknown = sorted(set(overrides) - set(TOPIC_SETTINGS))
    if unknown:
        return f"a topic has no setting {', '.join(unknown)}"
    values = dict(brokers_values)
    for name, text in overrides.items():
        try:
            values[name] = TOPIC_SETTINGS[name].parse(text)
        except BadSetting as refusal:
            return str(refusal)
    least, most = values["min.compaction.lag.ms"], values["max.compaction.lag.ms"]
    assert isinstance(least, int)
    assert isinstance(most, int)
    if least > most:
        return f"min.compaction.lag.ms ({least}) is above max.compaction.lag.ms ({most})"
    if values["remote.storage.enable"]:
        return "remote.storage.enable=true: there is no tiered storage in this cluster"
    return None
