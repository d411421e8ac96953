"""When a follower counts as caught up: at the end now, or at what was the end not long ago."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from tidelog.core.replication.progress import FollowerProgress, FollowerSession


def fetch(
    progress: FollowerProgress,
    offset: int,
    *,
    end: int,
    now_ms: int,
    session: FollowerSession | None = None,
) -> bool:
    return progress.on_fetch(
        fetch_offset=offset,
        log_start_offset=0,
        broker_epoch=1,
        leader_end_offset=end,
        session=session,
        now_ms=now_ms,
    )


def test_a_fetch_at_the_end_catches_up_now() -> None:
    progress = FollowerProgress(2, caught_up_ms=None)
    assert fetch(progress, 10, end=10, now_ms=50)
    assert progress.caught_up_ms == 50
    assert not fetch(progress, 10, end=10, now_ms=60)


def test_a_fetch_at_the_former_end_was_caught_up_when_it_fetched_before() -> None:
    progress = FollowerProgress(2, caught_up_ms=None)
    fetch(progress, 0, end=10, now_ms=50)
    assert progress.caught_up_ms is None
    fetch(progress, 10, end=20, now_ms=80)
    assert progress.caught_up_ms == 50


def test_a_fetch_before_the_former_end_changes_nothing() -> None:
    progress = FollowerProgress(2, caught_up_ms=7)
    fetch(progress, 0, end=10, now_ms=50)
    fetch(progress, 5, end=20, now_ms=80)
    assert progress.caught_up_ms == 7


def test_a_quiet_partition_was_fetched_with_every_request_of_its_session() -> None:
    session = cast("FollowerSession", SimpleNamespace(used_at_ms=50))
    progress = FollowerProgress(2, caught_up_ms=None)
    fetch(progress, 10, end=10, now_ms=50, session=session)
    session.used_at_ms = 900
    progress.on_leader_append(from_end_offset=10)
    assert progress.caught_up_ms == 900

    session.used_at_ms = 2_000
    progress.on_leader_append(from_end_offset=11)
    assert progress.caught_up_ms == 900


def test_who_has_everything_is_caught_up_however_long_ago_it_fetched() -> None:
    progress = FollowerProgress(2, caught_up_ms=None)
    fetch(progress, 10, end=10, now_ms=0)
    assert progress.is_caught_up(leader_end_offset=10, now_ms=9_999, lag_ms_max=100)
    assert not progress.is_caught_up(leader_end_offset=11, now_ms=9_999, lag_ms_max=100)
    assert progress.is_caught_up(leader_end_offset=11, now_ms=100, lag_ms_max=100)
