"""The demo itself could not go on: not a verdict, an accident."""

from __future__ import annotations

import time
from collections.abc import Callable

WITHIN_S = 300.0
"""So long a machine may take for one step, however slow it is."""
_LOOK_AGAIN_S = 0.05

Say = Callable[[str], None]
"""Tells a person how it goes, one line at a time."""


class DemoFailed(Exception):
    """The text is one line."""


def wait_until(reached: Callable[[], bool], what: str, *, within_s: float = WITHIN_S) -> None:
    """Look again and again; DemoFailed when it takes longer than that."""
    deadline_s = time.monotonic() + within_s
    while not reached():
        if time.monotonic() > deadline_s:
            raise DemoFailed(f"{what} did not come within {within_s:.0f} s")
        time.sleep(_LOOK_AGAIN_S)
