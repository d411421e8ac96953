"""The settings of compaction, and the defaults of those that each topic has for itself."""

from __future__ import annotations

from tidelog.core.model.config import Setting, SettingType, Update, Value
from tidelog.core.model.limits import INT64_MAX

_LONG, _DOUBLE = SettingType.LONG, SettingType.DOUBLE


def _cleaner(
    type_: SettingType, name: str, default: Value, about: str, at_least: int | None = None
) -> Setting:
    return Setting(
        name=f"log.cleaner.{name}",
        type=type_,
        default=default,
        about=about,
        at_least=at_least,
        update=Update.CLUSTER_WIDE,
    )


CLEANER = (
    Setting(
        name="log.cleaner.enable",
        type=SettingType.BOOLEAN,
        default=True,
        about="Whether topics with cleanup.policy=compact are compacted on this broker.",
    ),
    _cleaner(_LONG, "backoff.ms", 15_000, "The pause after no log was found due.", 0),
    _cleaner(
        _LONG,
        "dedupe.buffer.size",
        134_217_728,
        "Memory for the keys of one round, 24 bytes each; more keys take more rounds.",
    ),
    _cleaner(
        _DOUBLE,
        "io.buffer.load.factor",
        0.9,
        "How full that memory may get; a fuller one takes more keys and more time for each.",
    ),
    _cleaner(SettingType.INT, "io.buffer.size", 524_288, "How much is read at once.", 0),
    _cleaner(
        _DOUBLE,
        "io.max.bytes.per.second",
        1.7976931348623157e308,
        "So much is read by compaction at most.",
    ),
    _cleaner(
        _LONG, "delete.retention.ms", 86_400_000, "Default of the topic's delete.retention.ms.", 0
    ),
    _cleaner(_LONG, "min.compaction.lag.ms", 0, "Default of the topic's min.compaction.lag.ms.", 0),
    _cleaner(
        _LONG,
        "max.compaction.lag.ms",
        INT64_MAX,
        "Default of the topic's max.compaction.lag.ms.",
        1,
    ),
    Setting(
        name="log.cleaner.min.cleanable.ratio",
        type=_DOUBLE,
        default=0.5,
        about="Default of the topic's min.cleanable.dirty.ratio.",
        at_least=0,
        at_most=1,
        update=Update.CLUSTER_WIDE,
    ),
)
