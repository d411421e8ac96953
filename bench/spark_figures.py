"""Rows per second on Spark, side by side: ours, Spark's own, and what others do or could do."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

from bench.rows import aligned, spread

OURS, THEIRS, CONFLUENT = "Tidelog", "Spark's own", "confluent-kafka"
READY = "ready columns"
"""Nobody's records: as fast as a source in Python can be."""
WHO = (OURS, THEIRS, CONFLUENT, READY)
UNIT = "k rows/s"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One line of the table."""

    title: str
    bar: float
    """Times as fast as Spark's own in the same run."""


@dataclass(slots=True)
class Speeds:
    """Thousands of rows per second, by line and by who did it."""

    samples: dict[Line, dict[str, list[float]]] = field(default_factory=dict)

    def add(self, line: Line, who: str, *, records: int, took_s: float) -> None:
        found = self.samples.setdefault(line, {})
        found.setdefault(who, []).append(records / took_s / 1_000)

    def ratio(self, line: Line) -> float | None:
        """Our median by that of Spark's own."""
        ours, theirs = (self.samples.get(line, {}).get(who) for who in (OURS, THEIRS))
        return median(ours) / median(theirs) if ours and theirs else None

    def is_met(self, line: Line) -> bool | None:
        """None: nothing can be said."""
        ratio = self.ratio(line)
        return None if ratio is None else ratio >= line.bar

    def table(self) -> str:
        headings = (UNIT, *WHO, "ratio", "bar", "met")
        return aligned([headings, *(self._row(line) for line in self.samples)])

    def summary(self) -> str:
        """One line: which bars were met."""
        judged = {line: self.is_met(line) for line in self.samples}
        missed = [line.title for line, is_met in judged.items() if is_met is False]
        requested = sum(is_met is not None for is_met in judged.values())
        text = f"{requested - len(missed)} of {requested} met"
        return f"{text}; not met: {'; '.join(missed)}" if missed else text

    def plain(self) -> list[dict[str, object]]:
        """For JSON: every sample, and what was made of them."""
        return [
            {
                "metric": line.title,
                "unit": UNIT,
                "samples": found,
                "medians": {who: median(samples) for who, samples in found.items()},
                "ratio": self.ratio(line),
                "bar": line.bar,
                "met": self.is_met(line),
            }
            for line, found in self.samples.items()
        ]

    def _row(self, line: Line) -> tuple[str, ...]:
        found = self.samples[line]
        ratio, is_met = self.ratio(line), self.is_met(line)
        return (
            line.title,
            *(spread(found.get(who, [])) for who in WHO),
            "" if ratio is None else f"{ratio:.2f}x",
            f"≥ {line.bar:g}x",
            {None: "", True: "yes", False: "NO"}[is_met],
        )
