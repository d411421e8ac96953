"""Durations as people and Spark write them: 500ms, 5s, 10 minutes, 1 hour, 2 days."""

from __future__ import annotations

import re

from tidelog.core.model.exceptions import TidelogError

_UNITS_MS = {
    **dict.fromkeys(("ms", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}
_FORM = re.compile(r"(\d+(?:\.\d+)?)\s*([a-z]+)")
DURATION_MS_MAX = 366 * _UNITS_MS["d"]
EXPECTED = 'a duration like "500ms", "5s", "10 minutes" or "1 hour"'


class BadDuration(TidelogError, ValueError):
    """The text says what is expected."""


def duration_ms(text: str) -> int:
    """Whole milliseconds, more than none and at most a year."""
    found = _FORM.fullmatch(text.strip().lower())
    if found is None or found[2] not in _UNITS_MS:
        raise BadDuration(f"{text!r} is no duration; expected {EXPECTED}")
    result = round(float(found[1]) * _UNITS_MS[found[2]])
    if not 0 < result <= DURATION_MS_MAX:
        raise BadDuration(f"{text!r}: expected more than nothing and at most 366 days")
    return result
