"""How far one follower is, as its leader learns it: a fetch's start offset is the follower's ack.

A follower that watches a quiet partition by an incremental session does not mention it in its
requests. It still fetches it with each of them; `on_leader_append` makes up for that.
"""

from __future__ import annotations

from typing import Protocol


class FollowerSession(Protocol):
    """The session through which a follower fetches."""

    used_at_ms: int
    """When its last request came."""


class FollowerProgress:
    """None: nothing is known yet in this leader epoch. Then nothing is assumed either."""

    __slots__ = (
        "broker_epoch",
        "broker_id",
        "caught_up_ms",
        "fetched_at_ms",
        "session",
        "leader_end_offset",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, broker_id: int, *, caught_up_ms: int | None) -> None:
        self.broker_id = broker_id
        self.log_end_offset: int | None = None
        self.log_start_offset: int | None = None
        self.broker_epoch: int | None = None
        """Of the process that fetched last."""
        self.caught_up_ms = caught_up_ms
        """The last time at which it had everything; a member of the set begins with the term."""
        self.fetched_at_ms: int | None = None
        self.leader_end_offset: int | None = None
        """Where the leader's log ended when the follower fetched last."""
        self.session: FollowerSession | None = None

    def on_fetch(
        self,
        *,
        fetch_offset: int,
        log_start_offset: int,
        broker_epoch: int | None,
        leader_end_offset: int,
        session: FollowerSession | None,
        now_ms: int,
    ) -> bool:
        """It has everything before `fetch_offset`. True if that is another offset than before.

        A follower is caught up now if it reads at the end, and was so at its previous fetch if it
        has by now what there was then. The second case is a busy log: its end is never reached.
        """
        if fetch_offset >= leader_end_offset:
            self.caught_up_ms = now_ms
        elif (
            self.leader_end_offset is not None
            and self.fetched_at_ms is not None
            and fetch_offset >= self.leader_end_offset
        ):
            self.caught_up_ms = max(self.caught_up_ms or self.fetched_at_ms, self.fetched_at_ms)
        moved = fetch_offset != self.log_end_offset
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self.leader_end_offset = max(leader_end_offset, self.leader_end_offset or 0)
        self.fetched_at_ms = now_ms
        self.session = session
        return moved

    def on_leader_append(self, *, from_end_offset: int) -> None:
        """The leader's log grows from here: whoever had all of it had so at its last request."""
        if self.log_end_offset == from_end_offset and self.session is not None:
            seen_ms = self.session.used_at_ms
            self.caught_up_ms = max(self.caught_up_ms or seen_ms, seen_ms)

    def is_caught_up(self, *, leader_end_offset: int, now_ms: int, lag_ms_max: int) -> bool:
        """It has everything, or had so not too long ago."""
        if self.log_end_offset == leader_end_offset:
            return True
        return self.caught_up_ms is not None and now_ms - self.caught_up_ms <= lag_ms_max

    def is_fetching(self, *, now_ms: int, lag_ms_max: int) -> bool:
        """Whether its session was used not too long ago, be it for this partition or for others."""
        return self.session is not None and now_ms - self.session.used_at_ms <= lag_ms_max
