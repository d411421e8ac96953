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

from tidelog.spark.pipeline.file.complaints import BadPlan, Complaint
from tidelog.spark.pipeline.file.plan import Plan
from tidelog.spark.pipeline.file.reading import Checked, check_mapping, check_text

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidelog.spark.pipeline.job.events import Outcome, Tell
    from tidelog.spark.pipeline.job.stopping import Stopping

__all__ = ["BadPlan", "Checked", "Complaint", "Plan", "check", "run"]

PlanLike = str | Path | Mapping[str, object]


def check(plan: PlanLike) -> Checked:
    """Every mistake at once, with its line. OSError if the file cannot be read."""
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
    plan: PlanLike | Plan,
    *,
    bootstrap: str | None = None,
    master: str | None = None,
    available_now: bool = False,
    spark: SparkSession | None = None,
    tell: Tell | None = None,
    stopping: Stopping | None = None,
    log: str | None = None,
) -> Outcome:
    """Run it until it ends or `stopping` is asked; BadPlan if it cannot.

    `bootstrap` and `master` go above what the plan says. With `spark` it runs in that session's
    Spark, which goes on afterwards; without, Spark is started and stopped, and writes to `log`.
    `tell` is called with what happens, see job/events.py.
    """
    whole = plan if isinstance(plan, Plan) else check(plan).plan_or_raise()
    from tidelog.spark.session import require_spark

    require_spark("tidelog pipeline")
    from tidelog.spark.pipeline.job.starting import start
    from tidelog.spark.pipeline.job.stopping import Stopping

    return start(
        whole,
        bootstrap=bootstrap,
        master=master,
        is_available_now=available_now,
        spark=spark,
        tell=tell or (lambda event: None),
        stopping=stopping or Stopping(),
        log=log,
    )
