"""The story's clock: durations are divided for the cluster, and believed within wide limits."""

from __future__ import annotations

from tidelog.lab.engines.story_clock import GIVEN_UP_AFTER_S, StoryClock, monotonic_us

PACE = 3.0


def test_settings_that_are_durations_are_divided() -> None:
    told = {
        "broker.session.timeout.ms": "6000",
        "log.segment.delete.delay.ms": "0",
        "leader.imbalance.check.interval.seconds": "20",
        "tidelog.failure.detection": "session",
        "batch.size": "200",
    }
    assert StoryClock(PACE).settings(told) == {
        "broker.session.timeout.ms": "2000",
        "log.segment.delete.delay.ms": "0",
        "leader.imbalance.check.interval.seconds": "7",
        "tidelog.failure.detection": "session",
        "batch.size": "200",
    }


def test_an_interval_is_never_nothing() -> None:
    clock = StoryClock(10.0)
    assert clock.settings({"a.seconds": "1"}) == {"a.seconds": "1"}
    assert clock.real_ms(1) == 1
    assert clock.real_ms(0) == 0


def test_moments_of_the_machine_are_moments_of_the_story() -> None:
    clock = StoryClock(PACE)
    now_us = monotonic_us()
    assert clock.at_us(now_us + 2_000_000) - clock.at_us(now_us) == 6_000_000
    before_us = clock.now_us
    assert 0 <= before_us <= clock.now_us


def test_a_duration_is_believed_within_wide_limits() -> None:
    at_least_ms, at_most_ms = StoryClock(PACE).stretched(3_000, 6_000)
    assert at_least_ms == 300
    assert at_most_ms == GIVEN_UP_AFTER_S * 1_000 * PACE
    assert StoryClock(PACE).stretched(0, 1_000_000) == (0, 1_000_000)
