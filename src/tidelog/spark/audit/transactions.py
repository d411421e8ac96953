"""How the transaction of a record ended: by the markers in the log itself, and as brokers say.

A transactional record counts as soon as a commit marker of its producer follows it, and never if an
abort marker does. Readers do not look for markers: brokers tell them which transactions were
aborted. An audit knows both and can compare.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple

COMMITTED = 0
"""Also what was never in a transaction."""
ABORTED = 1
OPEN = 2


class TransactionMarker(NamedTuple):
    """The end of one producer's transaction in one partition."""

    offset: int
    producer_id: int
    is_commit: bool


class Decisions:
    """The markers of one partition, by producer."""

    def __init__(self, markers: Iterable[TransactionMarker] = ()) -> None:
        self._offsets: dict[int, list[int]] = {}
        self._commits: dict[int, list[bool]] = {}
        for marker in sorted(markers):
            self._offsets.setdefault(marker.producer_id, []).append(marker.offset)
            self._commits.setdefault(marker.producer_id, []).append(marker.is_commit)

    def state(self, producer_id: int, offset: int) -> int:
        """Of a transactional record at this offset: the first marker behind it decides."""
        offsets = self._offsets.get(producer_id, [])
        at = bisect_right(offsets, offset)
        if at == len(offsets):
            return OPEN
        return COMMITTED if self._commits[producer_id][at] else ABORTED


class Readers:
    """What a read_committed reader skips: it is told of aborted transactions, and meets markers.

    `aborted` are pairs of first offset and producer id, as a Fetch tells them.
    """

    def __init__(self) -> None:
        self._announced: list[tuple[int, int]] = []
        self._skipped: set[int] = set()

    def hear(self, aborted: Sequence[tuple[int, int]]) -> None:
        self._announced = sorted({*self._announced, *aborted})

    def skips(self, producer_id: int, base_offset: int, end_offset: int) -> bool:
        """Whether the transactional batch is left out; batches come in the order of the log."""
        while self._announced and self._announced[0][0] < end_offset:
            self._skipped.add(self._announced.pop(0)[1])
        return producer_id in self._skipped

    def meets(self, marker: TransactionMarker) -> None:
        if not marker.is_commit:
            self._skipped.discard(marker.producer_id)
