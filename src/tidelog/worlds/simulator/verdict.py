"""The verdict on one seed: what was found, and how much was checked."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from tidelog.judge.anomalies import Anomaly


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """How one seed ended."""

    seed: int
    anomalies: tuple[Anomaly, ...]
    operations: int
    steps: int
    events: Counter[str]
    digest: str | None
    newest_lines: tuple[str, ...]
    traceback: str | None
    """Where the broker, or the simulator itself, raised."""
    elections: int = 0
    """Of partition leaders."""
    cpu_seconds: float = 0.0
    story: tuple[str, ...] = ()
    """The steps of the plan, where there is one."""
