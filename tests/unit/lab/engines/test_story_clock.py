"""The story's clock: durations are divided for the cluster, and believed within limits."""

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


def test_a_duration_is_believed_within_five_seconds_of_real_time() -> None:
    assert StoryClock(1.0).stretched(9_000, 9_010) == (4_000, 14_010)
    assert StoryClock(1.0).stretched(3_000, 6_000) == (300, 11_000)
    assert StoryClock(PACE).stretched(30_000, 30_000) == (15_000, 45_000)


def test_a_death_seen_by_its_connection_is_told_from_one_by_silence() -> None:
    """Of Kafka's default session, and of ours."""
    _, by_connection_ms = StoryClock(1.0).stretched(20, 100)
    assert by_connection_ms < 7_000, "a session of 9 s without a heartbeat interval of 2 s"


def test_waiting_is_not_given_up_before_a_minute() -> None:
    assert StoryClock(PACE).patience_ms(6_000) == GIVEN_UP_AFTER_S * 1_000 * PACE
    assert StoryClock(PACE).patience_ms(1_000_000) == 1_000_000
