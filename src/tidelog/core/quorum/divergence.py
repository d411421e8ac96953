"""Where two copies of the metadata log part, judged by quorum epochs and never by high watermark.

The leader judges a follower's fetch: it may go on, it must cut its log first, or it is so far
behind that only a snapshot helps. The follower finds out where to cut.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

from tidelog.core.quorum.values import LogPosition


class EpochsOfLog(Protocol):
    """The leader epochs of a log, as far as it reaches back."""

    @property
    def position(self) -> LogPosition: ...

    @property
    def log_start_offset(self) -> int: ...

    def end_of(self, quorum_epoch: int) -> LogPosition | None:
        """The largest epoch not after the given one, and where its records end; None: unknown."""


class Diverged(NamedTuple):
    """The follower's log has something that the leader's has not: cut, then ask again."""

    at: LogPosition


class NeedsSnapshot(NamedTuple):
    """The leader's log no longer reaches back so far."""

    snapshot: LogPosition


def judge_fetch(
    follower: LogPosition,
    log: EpochsOfLog,
    *,
    oldest_snapshot: LogPosition | None,
    newest_snapshot: LogPosition | None,
) -> Diverged | NeedsSnapshot | None:
    """None: the follower's log is a prefix of this one, and it may read on from its end.

    `follower` is the end of its log with the epoch of its newest record.
    """
    if newest_snapshot is not None and (
        follower.end_offset == 0 or _is_behind(follower, log.log_start_offset, oldest_snapshot)
    ):
        return NeedsSnapshot(newest_snapshot)
    end = log.end_of(follower.quorum_epoch) or log.position
    if end.quorum_epoch != follower.quorum_epoch or end.end_offset < follower.end_offset:
        return Diverged(end)
    return None


def _is_behind(follower: LogPosition, log_start_offset: int, oldest: LogPosition | None) -> bool:
    if follower.end_offset < log_start_offset:
        return True
    if oldest is None:
        return False
    at_start = follower.end_offset == log_start_offset == oldest.end_offset
    if at_start and follower.quorum_epoch != oldest.quorum_epoch:
        return True
    return follower.quorum_epoch < oldest.quorum_epoch


def cut_point(diverged: LogPosition, log: EpochsOfLog) -> int:
    """Where the follower must cut: the end of what both have of the epoch that the leader named."""
    mine = log.end_of(diverged.quorum_epoch) or log.position
    if mine.quorum_epoch == diverged.quorum_epoch:
        return min(mine.end_offset, diverged.end_offset)
    return min(mine.end_offset, log.position.end_offset)
