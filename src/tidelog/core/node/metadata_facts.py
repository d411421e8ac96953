"""The metadata log as the quorum's machine sees it: positions, epochs, and what is durable."""

from __future__ import annotations

from tidelog.core.quorum.values import Position
from tidelog.core.storage.log import Log


class MetadataFacts:
    """Reads a log and changes nothing."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self.snapshot: Position | None = None
        """The newest one; where the log is empty it says in which epoch its end lies."""
        self.counts_unsynced = False
        """A voter alone, while it starts: one sync at the end, before anybody hears of anything."""

    @property
    def position(self) -> Position:
        log = self._log
        newest = log.latest_leader_epoch
        if newest is None:
            newest = 0 if self.snapshot is None else self.snapshot.quorum_epoch
        return Position(newest, log.log_end_offset)

    @property
    def synced_end_offset(self) -> int:
        log = self._log
        return log.log_end_offset if self.counts_unsynced else log.synced_end_offset

    @property
    def log_start_offset(self) -> int:
        return self._log.log_start_offset

    def end_of(self, quorum_epoch: int) -> Position | None:
        found = self._log.leader_epoch_end(quorum_epoch)
        return None if found is None else Position(*found)
