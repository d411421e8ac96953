"""Parked requests expire in the order of their deadlines, and never twice."""

from __future__ import annotations

from tidelog.core.node.connections.request_timeouts import RequestTimeouts


class Sleeper:
    def __init__(self) -> None:
        self.expired_at: list[int] = []

    def on_expired(self, now_ms: int) -> None:
        self.expired_at.append(now_ms)


def test_each_item_expires_once_when_its_own_time_has_come() -> None:
    timeouts = RequestTimeouts()
    short, long = Sleeper(), Sleeper()
    timeouts.add(long, timeout_ms=500, now_ms=0)
    timeouts.add(short, timeout_ms=100, now_ms=50)
    assert timeouts.next_deadline_ms() == 150

    assert timeouts.expire(149) == 0
    assert timeouts.expire(150) == 1
    assert timeouts.expire(10_000) == 1

    assert (short.expired_at, long.expired_at) == ([150], [10_000])
    assert timeouts.next_deadline_ms() is None


def test_a_discarded_item_never_expires() -> None:
    timeouts = RequestTimeouts()
    item = Sleeper()
    timeouts.add(item, timeout_ms=100, now_ms=0)

    timeouts.discard(item, timeout_ms=100)
    timeouts.discard(item, timeout_ms=7)

    assert timeouts.expire(1_000) == 0
    assert len(timeouts) == 0


def test_an_item_that_parks_another_while_expiring_loses_nothing() -> None:
    timeouts = RequestTimeouts()
    later = Sleeper()

    class Chained(Sleeper):
        def on_expired(self, now_ms: int) -> None:
            super().on_expired(now_ms)
            timeouts.add(later, timeout_ms=100, now_ms=now_ms)

    timeouts.add(Chained(), timeout_ms=100, now_ms=0)

    assert timeouts.expire(100) == 1
    assert timeouts.next_deadline_ms() == 200
    assert timeouts.expire(200) == 1
    assert later.expired_at == [200]
