"""Requests that wait: produce requests parked until the high watermark covers what they wrote.

One slots object per parked request, referenced from every partition that it waits for. The
required end offsets of one partition are monotone, so each partition keeps a plain deque.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Protocol

from tidelog.core.model.errors import ErrorCode


class Waiter(Protocol):
    """Whoever waits for several partitions hears of each that is done."""

    is_done: bool

    def on_partition_gone(self, partition: object, code: ErrorCode) -> None:
        """This partition is no longer led here; heard once for each end that it waits for."""

    def on_covered(self) -> None:
        """The high watermark has passed one of the end offsets that it waits for."""


class Watcher(Protocol):
    """Something that wants to look again when a partition has changed: a parked fetch."""

    def on_partition_changed(self) -> None: ...


class FollowerWatcher(Watcher, Protocol):
    """A follower's fetches of a partition, seen by its leader."""

    def on_isr_changed(self) -> None:
        """The follower may be outside now: its next request asks to be let in."""


def notify(watchers: Iterable[Watcher]) -> None:
    for watcher in list(watchers):
        watcher.on_partition_changed()


class ProducePurgatory:
    """One partition's parked produce requests.

    Invariant: every parked end offset is above the high watermark that was last announced, and
    they never decrease, except for duplicates, which may wait for an earlier end (see `park`).
    """

    __slots__ = ("_parked", "high_watermark")

    def __init__(self, *, high_watermark: int) -> None:
        self.high_watermark = high_watermark
        self._parked: deque[tuple[int, Waiter]] = deque()

    def __len__(self) -> int:
        return len(self._parked)

    def park(self, waiter: Waiter, *, required_end_offset: int) -> None:
        """A duplicate's end may lie below its neighbours': it then waits for theirs as well.

        That is a little longer than needed and never too short, and keeps the queue monotone.
        """
        assert self.high_watermark < required_end_offset, "already covered: answer it instead"
        if self._parked and self._parked[-1][0] > required_end_offset:
            required_end_offset = self._parked[-1][0]
        self._parked.append((required_end_offset, waiter))

    def on_high_watermark(self, high_watermark: int) -> None:
        """Notify everyone who is now covered, in the order in which they came."""
        assert self.high_watermark <= high_watermark, "the high watermark never goes back"
        self.high_watermark = high_watermark
        parked = self._parked
        while parked and parked[0][0] <= high_watermark:
            parked.popleft()[1].on_covered()

    def drop_done(self) -> None:
        """Forget those that were answered otherwise (a timeout): called rarely."""
        self._parked = deque(item for item in self._parked if not item[1].is_done)

    def end(self, partition: object, code: ErrorCode) -> None:
        """The partition is gone or led by another: notify everyone who still waits."""
        parked, self._parked = self._parked, deque()
        for _, waiter in parked:
            if not waiter.is_done:
                waiter.on_partition_gone(partition, code)

    def check(self) -> None:
        previous = self.high_watermark
        for required_end_offset, _ in self._parked:
            assert self.high_watermark < required_end_offset, "forgotten"
            assert previous <= required_end_offset, "out of order"
            previous = required_end_offset
