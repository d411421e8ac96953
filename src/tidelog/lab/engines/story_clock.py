"""The story's clock where time is real: a story of minutes is played several times as fast.

A pace of 3 makes a session of 6 s one of 2 s: the settings that a story names are divided by it,
and what goes by is multiplied, so that the story still counts its 6 s. What a broker does by
itself, start or write to a disk, is no faster for that, and it shares the machine with others. So
waiting is not given up before a minute, and a duration may be off by five seconds of real time. At
a pace of 1 that is less than Kafka's default session, so that a death noticed by its connection is
told from one noticed by silence.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

GIVEN_UP_AFTER_S = 60.0
OFF_BY_S = 5.0
"""How much longer or shorter than the story says something may take on a busy machine."""
EARLIER_BY = 10
"""But never less than a tenth of what the story says."""


class StoryClock:
    """Begins at 0 with the story."""

    def __init__(self, pace: float) -> None:
        assert pace > 0, pace
        self.pace = pace
        self._began_us = monotonic_us()

    @property
    def now_us(self) -> int:
        return self.at_us(monotonic_us())

    def at_us(self, monotonic: int) -> int:
        """A moment of the machine's monotonic clock, which all its processes share."""
        return round((monotonic - self._began_us) * self.pace)

    def real_ms(self, story_ms: float) -> int:
        """A duration of the story as the cluster knows it; what is more than nothing stays so."""
        return 0 if story_ms <= 0 else max(1, round(story_ms / self.pace))

    def real_s(self, story_ms: float) -> float:
        return story_ms / self.pace / 1_000

    def stretched(self, at_least_ms: float, at_most_ms: float) -> tuple[float, float]:
        """The limits within which a duration of the story is believed."""
        off_by_ms = OFF_BY_S * 1_000 * self.pace
        return max(at_least_ms / EARLIER_BY, at_least_ms - off_by_ms), at_most_ms + off_by_ms

    def patience_ms(self, within_ms: float) -> float:
        """How long to wait for what the story expects within this time."""
        return max(within_ms, GIVEN_UP_AFTER_S * 1_000 * self.pace)

    def settings(self, given: Mapping[str, str]) -> dict[str, str]:
        """Settings by Kafka's names; those that are durations are divided."""
        return {name: self._setting(name, text) for name, text in given.items()}

    def _setting(self, name: str, text: str) -> str:
        if name.endswith(".ms"):
            return str(int(int(text) / self.pace))
        if name.endswith(".seconds"):
            return str(max(1, round(int(text) / self.pace)))
        return text


def monotonic_us() -> int:
    return time.monotonic_ns() // 1_000
