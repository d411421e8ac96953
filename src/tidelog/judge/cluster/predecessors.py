"""Predecessors: who led before an election, and what of its log the winner has kept.

A leader that loses its power is compared as it was: what comes back may be another log. With the
new end of a log, a power loss may also take back that an old one was deleted.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.judge.cluster.mirror import Mirror, common_end
from tidelog.judge.cluster.picture import Picture


class Predecessors:
    """The newest leader of each partition."""

    def __init__(self, picture: Picture) -> None:
        self._picture = picture
        self._led_by: dict[str, int] = {}
        self._led_with: dict[str, Mirror] = {}
        """The logs of leaders that may have lost something since."""

    def on_tails_lost(self, node_id: int, partitions: Iterable[str]) -> None:
        """Called before the node shows what is left; only the first of several losses counts."""
        for partition in partitions:
            if self._led_by.get(partition) == node_id and partition not in self._led_with:
                self._led_with[partition] = self._picture.mirror(partition, node_id).copy()

    def kept_by(self, partition: str, winner_id: int) -> int:
        """Up to where the winner's log is what its predecessor's was; from now on it leads."""
        winner = self._picture.mirror(partition, winner_id)
        predecessor = self._led_by.get(partition)
        led_with = self._led_with.pop(partition, None)
        self._led_by[partition] = winner_id
        if led_with is None and predecessor is not None:
            led_with = self._picture.mirrors[partition].get(predecessor)
        if led_with is None:
            return winner.end_offset
        kept_end_offset = common_end(winner, led_with)
        winner.inherit(led_with)
        return kept_end_offset
