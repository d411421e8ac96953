"""The demo itself could not continue: that is a failure to run, not a verdict."""

from __future__ import annotations

import time
from collections.abc import Callable

from tidelog.core.model.exceptions import TidelogError

WITHIN_S = 300.0
"""Maximum duration of one step, generous enough for a slow machine."""
_POLL_INTERVAL_S = 0.05

Say = Callable[[str], None]
"""Prints one line about the progress of the demo."""


class DemoFailed(TidelogError):
    """The text is one line."""


def wait_until(reached: Callable[[], bool], what: str, *, within_s: float = WITHIN_S) -> None:
    """Poll until `reached` returns true; DemoFailed after `within_s`."""
    deadline_s = time.monotonic() + within_s
    while not reached():
        if time.monotonic() > deadline_s:
            raise DemoFailed(f"{what} did not come within {within_s:.0f} s")
        time.sleep(_POLL_INTERVAL_S)
