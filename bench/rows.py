"""Figures and their table: medians and spreads side by side, floors and bars, and who met them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from statistics import median

from bench.brokers import KAFKA, TIDELOG

NAMES = (TIDELOG, KAFKA)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """One line of the table. Floors and bars judge Tidelog, never Kafka."""

    title: str
    unit: str
    more_is_better: bool = True
    floor: float | None = None
    """An absolute figure for a machine like the one that the bars were set on (two cores)."""
    bar: float | None = None
    """The ratio to Apache Kafka in the same run that is asked for."""

    def meets(self, figure: float, wanted: float) -> bool:
        return figure >= wanted if self.more_is_better else figure <= wanted


@dataclass(slots=True)
class Figures:
    """Everything measured in one run, in the order in which metrics first appeared."""

    samples: dict[Metric, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, metric: Metric, broker: str, figure: float) -> None:
        self.samples.setdefault(metric, {}).setdefault(broker, []).append(figure)

    def median_of(self, metric: Metric, broker: str) -> float | None:
        found = self.samples.get(metric, {}).get(broker)
        return median(found) if found else None

    def ratio(self, metric: Metric) -> float | None:
        """Tidelog's median by Kafka's."""
        ours, theirs = self.median_of(metric, TIDELOG), self.median_of(metric, KAFKA)
        return ours / theirs if ours is not None and theirs else None

    def plain(self) -> list[dict[str, object]]:
        """For JSON: every sample, and what was made of them."""
        return [
            {
                "metric": metric.title,
                "unit": metric.unit,
                "samples": by_broker,
                "medians": {broker: median(found) for broker, found in by_broker.items()},
                "ratio": self.ratio(metric),
                "floor": metric.floor,
                "bar": metric.bar,
                "met": verdict(self, metric) or None,
            }
            for metric, by_broker in self.samples.items()
        ]


HEADINGS = ("", "unit", TIDELOG, KAFKA, "ratio", "floor", "bar", "met")
BROKER_CORES, CLIENT_CORES, OTHER_CORES = "cores: broker", "cores: client", "cores: others"
UNITS = (
    *("MB/s", "k records/s", "requests/s", "commits/s", "ms", "s", "times", "MiB", "% of a core"),
    *("broker CPU-s/GB", "broker CPU-µs/request", "broker CPU-µs/commit", "µs/request"),
)
"""In this order in the table; what kept a run from being faster has a table of its own."""
SATURATED = 0.9
QUIET_CORES = 0.2
"""More than that used by other programs, and MB/s say little."""


def table(figures: Figures) -> str:
    """The whole run as a Markdown table that is also readable in a terminal."""
    shown = [metric for metric in figures.samples if metric.unit in UNITS]
    shown.sort(key=lambda metric: UNITS.index(metric.unit))
    return aligned([HEADINGS, *(_row(figures, metric) for metric in shown)])


def limits_table(figures: Figures, *, cores: int) -> str:
    """How busy broker and clients were, and so what the limit was: a broker, or the load itself."""
    rows = [
        (
            "busy cores",
            *(
                f"{name}: {who}"
                for name in NAMES
                for who in ("broker", "client", "others", "limit")
            ),
        )
    ]
    rows += [
        (metric.title, *_busy(figures, metric.title, cores))
        for metric in figures.samples
        if metric.unit == BROKER_CORES
    ]
    return aligned(rows) if len(rows) > 1 else ""


def verdict(figures: Figures, metric: Metric) -> str:
    """Whether floor and bar are met; empty where nothing is asked or nothing can be said."""
    ours, ratio = figures.median_of(metric, TIDELOG), figures.ratio(metric)
    judged = []
    if ours is not None and metric.floor is not None:
        judged.append(metric.meets(ours, metric.floor))
    if ratio is not None and metric.bar is not None:
        judged.append(metric.meets(ratio, metric.bar))
    if not judged:
        return ""
    return "yes" if all(judged) else "NO"


def aligned(rows: Iterable[tuple[str, ...]]) -> str:
    """Markdown, padded; the first column to the left, the others to the right."""
    lines = list(rows)
    widths = [max(len(line[column]) for line in lines) for column in range(len(lines[0]))]
    return "\n".join(_lines(lines, widths))


def _lines(rows: list[tuple[str, ...]], widths: list[int]) -> Iterator[str]:
    for number, row in enumerate(rows):
        cells = [
            cell.ljust(width) if column == 0 else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        yield "| " + " | ".join(cells) + " |"
        if number == 0:
            rules = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
            yield "| " + " | ".join(rules) + " |"


def _busy(figures: Figures, title: str, cores: int) -> Iterator[str]:
    for name in NAMES:
        units = (BROKER_CORES, CLIENT_CORES, OTHER_CORES)
        used = [figures.median_of(busy(title, unit), name) for unit in units]
        broker, client, others = used
        if broker is None or client is None or others is None:
            yield from ("-", "-", "-", "")
            continue
        yield from map(short, (broker, client, others))
        yield limit(name, broker=broker, client=client, others=others, cores=cores)


def busy(title: str, unit: str) -> Metric:
    return Metric(title=title, unit=unit, more_is_better=False)


def limit(name: str, *, broker: float, client: float, others: float, cores: int) -> str:
    """What had no more to give. Tidelog has one thread for all requests; Kafka has many."""
    if broker + client >= SATURATED * cores:
        return "machine"
    if name == TIDELOG and broker >= SATURATED:
        return "broker"
    if broker + client + others >= SATURATED * cores:
        return "others"
    return "client" if client >= SATURATED else "waiting"


def disturbance(figures: Figures) -> float:
    """How many cores other programs used, over all loads of the run."""
    found = [
        figure
        for metric, by_broker in figures.samples.items()
        if metric.unit == OTHER_CORES
        for figures_of_one in by_broker.values()
        for figure in figures_of_one
    ]
    return median(found) if found else 0.0


def _row(figures: Figures, metric: Metric) -> tuple[str, ...]:
    by_broker = figures.samples[metric]
    ratio = figures.ratio(metric)
    sign = "≥" if metric.more_is_better else "≤"
    return (
        metric.title,
        metric.unit,
        spread(by_broker.get(TIDELOG, [])),
        spread(by_broker.get(KAFKA, [])),
        "" if ratio is None else f"{ratio:.2f}x",
        "" if metric.floor is None else f"{sign} {short(metric.floor)}",
        "" if metric.bar is None else f"{sign} {metric.bar:g}x",
        verdict(figures, metric),
    )


def spread(found: list[float]) -> str:
    """The median, and the least and the most in parentheses."""
    if not found:
        return "-"
    if len(found) == 1:
        return short(found[0])
    return f"{short(median(found))} ({short(min(found))}–{short(max(found))})"


def short(figure: float) -> str:
    """Three digits that matter."""
    if abs(figure) >= 100:
        return f"{figure:,.0f}"
    return f"{figure:.1f}" if abs(figure) >= 10 else f"{figure:.2f}"
