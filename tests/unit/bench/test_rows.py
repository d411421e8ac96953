"""The benchmark's table: medians and spreads, ratios, and verdicts that can be a no."""

from __future__ import annotations

import pytest

from bench.brokers import KAFKA, TIDELOG
from bench.rows import (
    BROKER_CORES,
    CLIENT_CORES,
    OTHER_CORES,
    Figures,
    Metric,
    busy,
    disturbance,
    limit,
    limits_table,
    short,
    spread,
    table,
    verdict,
)

SPEED = Metric(title="produce", unit="MB/s", floor=400, bar=1.0)
DELAY = Metric(title="one in flight", unit="ms", more_is_better=False, floor=0.5, bar=0.7)


def _figures(metric: Metric, *, ours: list[float], kafka: list[float]) -> Figures:
    figures = Figures()
    for name, found in ((TIDELOG, ours), (KAFKA, kafka)):
        for figure in found:
            figures.add(metric, name, figure)
    return figures


@pytest.mark.parametrize(
    ("metric", "ours", "kafka", "expected"),
    [
        (SPEED, [500, 600, 700], [500], "yes"),
        (SPEED, [390], [300], "NO"),  # over the bar, under the floor
        (SPEED, [450], [500], "NO"),  # over the floor, under the bar
        (SPEED, [450], [], "yes"),  # nobody to compare with
        (SPEED, [], [500], ""),
        (DELAY, [0.2], [0.4], "yes"),
        (DELAY, [0.6], [2.0], "NO"),
        (DELAY, [0.4], [0.5], "NO"),
        (Metric(title="x", unit="s"), [1.0], [2.0], ""),
    ],
)
def test_floor_and_bar_are_both_asked(
    metric: Metric, ours: list[float], kafka: list[float], expected: str
) -> None:
    assert verdict(_figures(metric, ours=ours, kafka=kafka), metric) == expected


def test_a_line_has_medians_spreads_and_the_ratio() -> None:
    text = table(_figures(SPEED, ours=[500, 900, 600], kafka=[300]))
    cells = [cell.strip() for cell in text.splitlines()[2].strip("| ").split("|")]
    assert cells == ["produce", "MB/s", "600 (500–900)", "300", "2.00x", "≥ 400", "≥ 1x", "yes"]


def test_lines_of_one_unit_stand_together() -> None:
    figures = Figures()
    for title, unit in (("a", "MB/s"), ("b", "ms"), ("c", "MB/s"), ("d", BROKER_CORES)):
        figures.add(Metric(title=title, unit=unit), TIDELOG, 1.0)
    assert [line[2] for line in table(figures).splitlines()[2:]] == ["a", "c", "b"]


@pytest.mark.parametrize(
    ("name", "broker", "client", "others", "expected"),
    [
        (TIDELOG, 0.95, 0.3, 0.0, "broker"),
        (KAFKA, 0.95, 0.3, 0.0, "waiting"),  # it has more threads than one
        (TIDELOG, 0.5, 1.0, 0.0, "client"),
        (KAFKA, 1.2, 0.7, 0.0, "machine"),
        (KAFKA, 0.5, 0.7, 0.7, "others"),
        (TIDELOG, 0.2, 0.1, 0.0, "waiting"),
    ],
)
def test_the_limit_is_whoever_has_nothing_left(
    name: str, broker: float, client: float, others: float, expected: str
) -> None:
    assert limit(name, broker=broker, client=client, others=others, cores=2) == expected


def test_how_busy_everybody_was_is_a_table_of_its_own() -> None:
    figures = Figures()
    assert limits_table(figures, cores=2) == ""
    assert disturbance(figures) == 0
    for unit, cores in ((BROKER_CORES, 0.95), (CLIENT_CORES, 0.4), (OTHER_CORES, 0.1)):
        figures.add(busy("produce", unit), TIDELOG, cores)
    cells = [cell.strip() for cell in limits_table(figures, cores=2).splitlines()[2].split("|")]
    assert cells[1:6] == ["produce", "0.95", "0.40", "0.10", "broker"]
    assert disturbance(figures) == 0.1


def test_figures_are_short() -> None:
    assert [short(x) for x in (12_345.6, 99.94, 9.876, 0.0)] == ["12,346", "99.9", "9.88", "0.00"]
    assert spread([]) == "-"
    assert spread([3.0]) == "3.00"
