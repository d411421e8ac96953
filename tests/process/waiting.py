"""Waiting for a condition with a deadline, which is how a test waits for a real process."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

POLL_INTERVAL_S = 0.01
PATIENCE_S = 120.0
"""Longer than anything takes that comes at all, on a slow machine with much else to do. Only a test
that fails waits so long."""
PATIENCE_MS = int(1_000 * PATIENCE_S)

T = TypeVar("T")


class TooLate(AssertionError):
    """The condition did not come true before its deadline."""


def wait_until(condition: Callable[[], T | None], what: str, *, within_s: float = PATIENCE_S) -> T:
    """The first true value of `condition`; TooLate when it takes longer than that."""
    deadline_s = time.monotonic() + within_s
    pause = threading.Event()
    while not (value := condition()):
        if time.monotonic() > deadline_s:
            raise TooLate(f"waited {within_s:g} s in vain for {what}")
        pause.wait(POLL_INTERVAL_S)
    return value
