"""Sessions: silence ends them, and the slowest active broker says what all have read."""

from __future__ import annotations

import pytest

from tests.unit.core.controller.cluster import cluster, state
from tidelog.core.controller.liveness import Sessions


def started() -> Sessions:
    sessions = Sessions(timeout_ms=9_000)
    sessions.start(cluster(state(1, 2, 3)).brokers.values(), now_ms=100)
    return sessions


def test_a_new_controller_gives_everybody_a_full_session() -> None:
    image = cluster(state(1, 2, 3), fenced=(3,))
    sessions = Sessions(timeout_ms=9_000)

    sessions.start(image.brokers.values(), now_ms=100)

    assert sessions.is_valid(image.brokers[1], now_ms=9_099)
    assert not sessions.is_valid(image.brokers[1], now_ms=9_100)
    assert not sessions.is_valid(image.brokers[3], now_ms=100), "who is fenced has none to lose"
    assert sessions.next_deadline_ms() == 9_100


@pytest.mark.scenario("D3-T2", "D5-B2")
def test_silence_counts_from_the_last_heartbeat() -> None:
    sessions = started()
    sessions.touch(1, 1, connection=None, now_ms=2_000)

    assert sessions.take_expired(9_099) == []
    assert [session.broker_id for session in sessions.take_expired(9_100)] == [2, 3]
    assert sessions.take_expired(10_999) == []
    assert [session.broker_id for session in sessions.take_expired(11_000)] == [1]
    assert sessions.next_deadline_ms() is None


def test_a_session_belongs_to_one_registration() -> None:
    image = cluster(state(1, 2, 3))
    sessions = Sessions(timeout_ms=9_000)

    sessions.touch(1, 77, connection=None, now_ms=0)

    assert not sessions.is_valid(image.brokers[1], now_ms=0)


def test_who_was_heard_on_a_connection_is_found_when_it_closes() -> None:
    sessions = started()
    sessions.touch(1, 1, connection=5, now_ms=200)
    sessions.touch(2, 2, connection=6, now_ms=200)

    closed = sessions.on_connection_closed(5)

    assert [session.broker_id for session in closed] == [1]
    assert sessions.on_connection_closed(5) == []


def test_nobody_is_blamed_for_what_could_not_be_heard() -> None:
    sessions = started()

    sessions.prolong(20_000)

    assert sessions.take_expired(28_999) == []
    assert len(sessions.take_expired(29_000)) == 3


def test_the_slowest_active_broker_says_what_all_have_read() -> None:
    image = cluster(state(1, 2, 3), fenced=(3,))
    sessions = Sessions(timeout_ms=9_000)
    for broker_id, end_offset in ((1, 50), (2, 40), (3, 10)):
        session = sessions.touch(broker_id, broker_id, connection=None, now_ms=0)
        session.metadata_end_offset = end_offset

    assert sessions.read_by_all(image.brokers.values()) == 40
    leaving = sessions.get(2)
    assert leaving is not None
    leaving.leaves_at_offset = 60
    assert sessions.read_by_all(image.brokers.values()) == 50
    sessions.clear()
    assert sessions.read_by_all(image.brokers.values()) is None
