"""Pauses between attempts: each twice the one before, up to a limit, and never quite the same."""

from __future__ import annotations

from random import Random

JITTER = 0.2
_DOUBLINGS_MAX = 32


class BackOff:
    """Every client waits its own time, so that a cluster's return is not a stampede."""

    def __init__(self, *, first_ms: int, most_ms: int, random: Random) -> None:
        self._first_ms = min(first_ms, most_ms)
        self._most_ms = most_ms
        self._random = random

    def pause_ms(self, failures_before: int) -> int:
        """The pause after a failure; `failures_before` it are those that came before this one."""
        if self._most_ms <= self._first_ms:
            return self._first_ms
        grown_ms = min(self._first_ms * 2 ** min(failures_before, _DOUBLINGS_MAX), self._most_ms)
        factor = self._random.uniform(1 - JITTER, 1 + JITTER)
        return min(int(grown_ms * factor), self._most_ms)
