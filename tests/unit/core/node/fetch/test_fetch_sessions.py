"""Incremental fetch sessions: who may go on, who must begin anew, and who makes room."""

from __future__ import annotations

from random import Random

from tidelog.core.model.errors import ErrorCode
from tidelog.core.node.fetch.fetch_sessions import FetchSession, FetchSessions
from tidelog.core.wire.fetch_fast import FetchCall, FetchedPartition
from tidelog.core.wire.sentinels import next_session_epoch


def call(
    *offsets: int, session_id: int = 0, session_epoch: int = 0, forget: tuple[int, ...] = ()
) -> FetchCall:
    partitions = [
        FetchedPartition(i, -1, offset, -1, -1, 1_000) for i, offset in enumerate(offsets)
    ]
    return FetchCall(
        -1, -1, 500, 1, 1_000, 0, session_id, session_epoch,
        [("orders", partitions)], [("orders", list(forget))], "",
    )  # fmt: skip


def kept(sessions: FetchSessions, *, now_ms: int = 0) -> FetchSession:
    session = sessions.context(call(0, 0), 12, now_ms)
    assert isinstance(session, FetchSession)
    assert session.wants_id
    sessions.keep(session, now_ms)
    return session


def cache(*, slots: int = 10) -> FetchSessions:
    return FetchSessions(slots=slots, evict_after_ms=120_000, random=Random(1))


def test_a_session_goes_on_with_its_id_and_the_next_session_epoch() -> None:
    sessions = cache()
    session = kept(sessions)
    session.pending.clear()

    again = sessions.context(call(7, session_id=session.id, session_epoch=1), 12, 0)

    assert again is session
    assert [entry.call.fetch_offset for entry in session.pending] == [7]
    assert len(session.entries) == 2
    session.check()


def test_unknown_ids_and_unexpected_session_epochs_are_refused() -> None:
    sessions = cache()
    session = kept(sessions)

    unknown = sessions.context(call(session_id=session.id + 1, session_epoch=1), 12, 0)
    too_new = sessions.context(call(session_id=session.id, session_epoch=2), 12, 0)
    other_kind = sessions.context(call(session_id=session.id, session_epoch=1), 13, 0)

    assert unknown is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert too_new is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert other_kind is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_fetch_closes_the_session_that_it_names() -> None:
    sessions = cache()
    session = kept(sessions)

    fresh = sessions.context(call(0, session_id=session.id, session_epoch=-1), 12, 0)

    assert isinstance(fresh, FetchSession)
    assert not fresh.wants_id
    assert len(sessions) == 0


def test_forgetting_every_partition_ends_the_session() -> None:
    sessions = cache()
    session = kept(sessions)
    session.pending.clear()

    rest = sessions.context(
        FetchCall(
            -1,
            -1,
            0,
            1,
            1,
            0,
            session.id,
            1,
            [],
            [("orders", [0, 1])],
            "",
        ),
        12,
        0,
    )

    assert isinstance(rest, FetchSession)
    assert rest.id == 0
    assert len(sessions) == 0


def test_a_full_cache_makes_room_only_by_dropping_someone_idle() -> None:
    sessions = cache(slots=1)
    old = kept(sessions, now_ms=0)

    refused = sessions.context(call(0), 12, 1_000)
    assert isinstance(refused, FetchSession)
    sessions.keep(refused, 1_000)
    assert refused.id == 0

    welcome = sessions.context(call(0), 12, 200_000)
    assert isinstance(welcome, FetchSession)
    sessions.keep(welcome, 200_000)
    assert welcome.id != 0
    gone = sessions.context(call(session_id=old.id, session_epoch=1), 12, 200_000)
    assert gone is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_session_epochs_skip_the_numbers_that_mean_something_else() -> None:
    assert next_session_epoch(1) == 2
    assert next_session_epoch(2**31 - 1) == 1
