"""What the failover benchmark makes of acknowledgements and of log lines."""

from __future__ import annotations

import pytest

from bench.brokers import KAFKA, TIDELOG
from bench.failover import KILL, RETURN, STOP, note_gaps, percentile
from bench.log_events import log_events
from bench.reports import summary
from bench.rows import Figures
from bench.writing import Gap, longest_gap

READY = "2026-11-16T09:51:58.502Z INFO    BrokerReady node_id=1 start_ms=84"
LEADS = "2026-11-16T09:52:00.291Z INFO    BecameLeader partition=a-0 broker_id=3 leader_epoch=0"


def test_the_longest_gap_counts_from_the_last_acknowledgement_before_the_moment() -> None:
    acknowledged_s = [1.0, 5.0, 5.1, 5.9, 6.0, 6.2]

    assert longest_gap(acknowledged_s, since_s=5.2) == Gap(5.1, 5.9)
    assert longest_gap(acknowledged_s, since_s=5.95) == Gap(6.0, 6.2)
    gap = longest_gap(acknowledged_s, since_s=4.0)
    assert gap is not None and gap.length_ms == 4_000


@pytest.mark.parametrize("acknowledged_s", [[], [7.0], [1.0, 2.0]])
def test_without_an_acknowledgement_afterwards_there_is_no_gap(acknowledged_s: list[float]) -> None:
    assert longest_gap(acknowledged_s, since_s=3.0) is None


@pytest.mark.parametrize(
    ("figures", "percent", "expected"),
    [([7.0], 90, 7.0), ([1.0, 2.0, 3.0], 50, 2.0), (list(map(float, range(11))), 90, 9.0)],
)
def test_percentiles(figures: list[float], percent: int, expected: float) -> None:
    assert percentile(figures, percent) == pytest.approx(expected)


def test_kills_are_judged_by_median_and_by_the_longest() -> None:
    figures = Figures()
    note_gaps(figures, TIDELOG, KILL, [100.0, 200.0, 1_600.0])
    note_gaps(figures, KAFKA, KILL, [11_000.0])
    note_gaps(figures, TIDELOG, STOP, [900.0])
    note_gaps(figures, TIDELOG, RETURN, [])

    met = {figure["metric"]: figure["met"] for figure in figures.plain()}
    assert met[f"write gap, {KILL}: median"] == "yes"
    assert met[f"write gap, {KILL}: longest"] == "NO"
    assert met[f"write gap, {STOP}: median"] is None, "there is no Kafka to compare it with"
    assert not any(RETURN in str(metric) for metric in met)
    assert summary(figures) == f"1 of 2 met; not met: write gap, {KILL}: longest (ms)"


def test_events_are_found_in_logs_with_their_moments_and_fields() -> None:
    lines = [READY, "Traceback (most recent call last):", "", "x y BecameLeader", LEADS]

    [ready, leads] = log_events(lines, "BrokerReady", "BecameLeader")

    assert leads.at_s - ready.at_s == pytest.approx(1.789)
    assert leads.has("partition", "a-0")
    assert leads.has("broker_id", 3)
    assert not leads.has("partition", "a")
    assert not leads.has("broker_id", 1)
    assert list(log_events(lines, "BrokerFenced")) == []
