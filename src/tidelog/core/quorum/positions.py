"""Where two copies of the metadata log part, judged by quorum epochs and never by high watermark.

The leader judges a follower's fetch: it may go on, it must cut its log first, or it is so far
behind that only a snapshot helps. The follower finds out where to cut.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tidelog.core.quorum.values import Position


class EpochsOfLog(Protocol):
    """The leader epochs of a log, as far as it reaches back."""

    @property
    def position(self) -> Position: ...

    @property
    def log_start_offset(self) -> int: ...

    def end_of(self, quorum_epoch: int) -> Position | None:
        """The largest epoch not after the given one, and where its records end; None: unknown."""


class Diverged(NamedTuple):
    """The follower's log has something that the leader's has not: cut, then ask again."""

    at: Position


class NeedsSnapshot(NamedTuple):
    """The leader's log no longer reaches back so far."""

    snapshot: Position


def judge_fetch(
    asked: Position,
    log: EpochsOfLog,
    *,
    oldest_snapshot: Position | None,
    newest_snapshot: Position | None,
) -> Diverged | NeedsSnapshot | None:
    """None: the follower's log is a prefix of this one, and it may read on from its end.

    `asked` is the end of the follower's log with the epoch of its newest record.
    """
    if newest_snapshot is not None and (
        asked.end_offset == 0 or _is_behind(asked, log.log_start_offset, oldest_snapshot)
    ):
        return NeedsSnapshot(newest_snapshot)
    end = log.end_of(asked.quorum_epoch) or log.position
    if end.quorum_epoch != asked.quorum_epoch or end.end_offset < asked.end_offset:
        return Diverged(end)
    return None


def _is_behind(asked: Position, log_start_offset: int, oldest: Position | None) -> bool:
    if asked.end_offset < log_start_offset:
        return True
    if oldest is None:
        return False
    at_start = asked.end_offset == log_start_offset == oldest.end_offset
    if at_start and asked.quorum_epoch != oldest.quorum_epoch:
        return True
    return asked.quorum_epoch < oldest.quorum_epoch


def cut_point(diverged: Position, log: EpochsOfLog) -> int:
    """Where the follower must cut: the end of what both have of the epoch that the leader named."""
    mine = log.end_of(diverged.quorum_epoch) or log.position
    if mine.quorum_epoch == diverged.quorum_epoch:
        return min(mine.end_offset, diverged.end_offset)
    return min(mine.end_offset, log.position.end_offset)
