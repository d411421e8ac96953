"""Pipelines: topics in, SQL between, tables or topics out, each batch exactly once.

    from tidelog.spark import pipeline

    checked = pipeline.check("orders.toml")
    outcome = pipeline.run("orders.toml", bootstrap="localhost:9092", available_now=True)

A plan may also be a mapping with the tables and keys of the file; then a step may be a function
from views (DataFrames by name) to a DataFrame. Checking needs no Spark.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from tidelog.spark.pipeline.file.diagnostics import BadPlan, Diagnostic
from tidelog.spark.pipeline.file.plan import PipelinePlan
from tidelog.spark.pipeline.file.plan_check import CheckedPlan, check_mapping, check_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidelog.spark.pipeline.job.events import EventListener, RunOutcome
    from tidelog.spark.pipeline.job.stop_signal import StopSignal

__all__ = ["BadPlan", "CheckedPlan", "Diagnostic", "PipelinePlan", "check", "run"]

PlanLike = str | Path | Mapping[str, object]


def check(plan: PlanLike) -> CheckedPlan:
    """Find all mistakes at once, with their lines. OSError if the file cannot be read."""
    if isinstance(plan, Mapping):
        return check_mapping(plan, base=str(Path.cwd()), name="pipeline")
    path = Path(plan)
    return check_text(
        path.read_text(encoding="utf-8"),
        file=str(plan),
        base=str(path.resolve().parent),
        name=path.stem,
    )


def run(
    plan: PlanLike | PipelinePlan,
    *,
    bootstrap: str | None = None,
    master: str | None = None,
    available_now: bool = False,
    spark: SparkSession | None = None,
    on_event: EventListener | None = None,
    stop: StopSignal | None = None,
    log: str | None = None,
) -> RunOutcome:
    """Run it until it ends or `stop` is requested; BadPlan if the plan has errors.

    `bootstrap` and `master` override the plan. With `spark` it runs in that session's Spark,
    which continues afterwards; without, Spark is started and stopped, and writes to `log`.
    `on_event` is called with every event of job/events.py.
    """
    checked = plan if isinstance(plan, PipelinePlan) else check(plan).plan_or_raise()
    from tidelog.spark.session import require_spark

    require_spark("tidelog pipeline")
    from tidelog.spark.pipeline.job.plan_runner import run_plan
    from tidelog.spark.pipeline.job.stop_signal import StopSignal

    return run_plan(
        checked,
        bootstrap=bootstrap,
        master=master,
        is_available_now=available_now,
        spark=spark,
        on_event=on_event or (lambda event: None),
        stop=stop or StopSignal(),
        log=log,
    )
