"""The wish to stop a run, said once or insisted on, from a signal or another thread."""

from __future__ import annotations

import threading
import time

_SLICE_S = 0.05


class StopSignal:
    """The first wish lets batches finish, the second does not.

    Plain flags: a signal's handler may run while its own thread holds the lock of an Event.
    """

    def __init__(self) -> None:
        self.is_asked = False
        self.is_insisted = False
        self._never = threading.Event()

    def ask(self) -> None:
        self.is_asked = True

    def insist(self) -> None:
        self.is_asked = self.is_insisted = True

    def ask_or_insist(self) -> None:
        """As Ctrl-C does: again means it."""
        if self.is_asked:
            self.insist()
        else:
            self.ask()

    def wait(self, timeout_s: float) -> None:
        """Until somebody asks, or the time is over; once asked only a little."""
        deadline_s = time.monotonic() + timeout_s
        self.pause(_SLICE_S)
        while not self.is_asked and time.monotonic() < deadline_s:
            self.pause(_SLICE_S)

    def pause(self, timeout_s: float) -> None:
        self._never.wait(timeout_s)
