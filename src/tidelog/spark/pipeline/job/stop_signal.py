"""The request to stop a run, gracefully or at once, from a signal or another thread."""

from __future__ import annotations

import threading
import time

_SLICE_S = 0.05


class StopSignal:
    """The first request lets batches finish, a forced one does not.

    Plain flags: a signal's handler may run while its own thread holds the lock of an Event.
    """

    def __init__(self) -> None:
        self.is_requested = False
        self.is_forced = False
        self._pause = threading.Event()

    def request(self) -> None:
        self.is_requested = True

    def force(self) -> None:
        self.is_requested = self.is_forced = True

    def request_or_force(self) -> None:
        """As Ctrl-C does: the second time it is forced."""
        if self.is_requested:
            self.force()
        else:
            self.request()

    def wait(self, timeout_s: float) -> None:
        """Wait until a stop is requested or the time is over; only briefly after a request."""
        deadline_s = time.monotonic() + timeout_s
        self.pause(_SLICE_S)
        while not self.is_requested and time.monotonic() < deadline_s:
            self.pause(_SLICE_S)

    def pause(self, timeout_s: float) -> None:
        self._pause.wait(timeout_s)
