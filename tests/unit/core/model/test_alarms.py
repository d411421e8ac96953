"""Alarms ring once, in order, and not when they were cancelled."""

from __future__ import annotations

from functools import partial

from tidelog.core.model.alarms import Alarms


def test_alarms_ring_in_the_order_of_their_deadlines() -> None:
    alarms = Alarms()
    rung: list[tuple[int, int]] = []
    for deadline_ms in (30, 10, 20):
        alarms.at(deadline_ms, partial(lambda at, now_ms: rung.append((at, now_ms)), deadline_ms))

    alarms.run(20)

    assert rung == [(10, 20), (20, 20)]
    assert alarms.heap[0][0] == 30


def test_a_cancelled_alarm_is_silent() -> None:
    alarms = Alarms()
    rung: list[int] = []
    alarm = alarms.at(10, rung.append)

    alarm.cancel()
    alarms.run(50)

    assert rung == []
    assert not alarm.is_pending
    assert alarms.heap == []


def test_an_alarm_may_set_the_next_one() -> None:
    alarms, rung = Alarms(), []

    def again(now_ms: int) -> None:
        rung.append(now_ms)
        if len(rung) < 3:
            alarms.at(now_ms + 10, again)

    alarms.at(10, again)
    for now_ms in range(0, 100, 5):
        alarms.run(now_ms)

    assert rung == [10, 20, 30]
