"""Durations as people write them: 500ms, 3s, 1.5s, 2m, 1h; a number alone means seconds."""

from __future__ import annotations

import re

from tidelog.cluster.errors import ClusterUsageError

_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000}
_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?")
_MS_MAX = 7 * 24 * _UNITS_MS["h"]


def duration_ms(text: str) -> int:
    """Whole milliseconds; ClusterUsageError if that is no duration."""
    found = _FORM.fullmatch(text.strip().lower())
    if found is None:
        raise ClusterUsageError(f"{text!r} is no duration; write it like 500ms, 3s, 1.5s or 2m")
    result = round(float(found[1]) * _UNITS_MS[found[2] or "s"])
    if not 0 < result <= _MS_MAX:
        raise ClusterUsageError(f"{text!r}: a duration is longer than nothing and at most 7 days")
    return result


def in_words(duration_ms: float) -> str:
    """The other way round, rounded as people would."""
    if duration_ms < 1_000:
        return f"{duration_ms:.0f} ms"
    if duration_ms < 60_000:
        return f"{duration_ms / 1_000:.1f}".removesuffix(".0") + " s"
    minutes, seconds = divmod(round(duration_ms / 1_000), 60)
    return f"{minutes} min {seconds} s" if seconds else f"{minutes} min"
