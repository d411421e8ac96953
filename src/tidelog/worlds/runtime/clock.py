"""The clock of a real process: monotonic milliseconds to decide by, wall ones to stamp with."""

from __future__ import annotations

import time

_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""Goes on while the machine is suspended: Linux stops its monotonic clock then, others do not."""


class MonotonicClock:
    """Wall time is monotonic time plus a distance that is measured anew now and then.

    So one reading of the monotonic clock serves a whole batch of events, and a stamp made late in
    the batch is not earlier than one made before it.
    """

    def __init__(self) -> None:
        self._distance_ms = 0
        self.measure()

    def now_ms(self) -> int:
        return time.clock_gettime_ns(_CLOCK) // 1_000_000

    def wall_ms(self, now_ms: int) -> int:
        return now_ms + self._distance_ms

    def measure(self) -> None:
        """Follow corrections of the system's wall clock."""
        self._distance_ms = time.time_ns() // 1_000_000 - self.now_ms()
