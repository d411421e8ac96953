"""From a plan to a run: the checkpoint held, a session, the views, the queries, the outcome."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

from tidelog.spark.pipeline.file.plan import PipelinePlan
from tidelog.spark.pipeline.job.checkpoint import (
    CheckpointUnusable,
    changes_since,
    lock_checkpoint,
    save_plan,
)
from tidelog.spark.pipeline.job.error_summary import first_sentence
from tidelog.spark.pipeline.job.events import EventListener, PipelineWarning, RunEnding, RunOutcome
from tidelog.spark.pipeline.job.frames import FrameRefused, Frames, Reader, topic_reader
from tidelog.spark.pipeline.job.preflight import PreflightFailed, check_clusters
from tidelog.spark.pipeline.job.query_runner import QueryRunner
from tidelog.spark.pipeline.job.sinks import SinkRefused
from tidelog.spark.pipeline.job.stop_signal import StopSignal
from tidelog.spark.pipeline.table.ledger import TableRefused
from tidelog.spark.pipeline.table.stores import store_for
from tidelog.spark.session import spark_session

DEFAULT_BOOTSTRAP = "localhost:9092"
BOOTSTRAP_VARIABLE = "TIDELOG_BOOTSTRAP"
LOG_FILE = "spark.log"
_SETTINGS = {
    # Queries of several sinks share the cores, rather than one waiting for all of another.
    "spark.scheduler.mode": "FAIR",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
}
_FORESEEN = (CheckpointUnusable, FrameRefused, SinkRefused, TableRefused)


def run_plan(
    plan: PipelinePlan,
    *,
    bootstrap: str | None,
    master: str | None,
    is_available_now: bool,
    spark: SparkSession | None,
    tell: EventListener,
    stopping: StopSignal,
    log: str | None,
    read: Reader | None = None,
    on_session: Callable[[], None] | None = None,
) -> RunOutcome:
    """Runs until it ends, fails or shall stop; a failure is an outcome, not an exception."""
    if is_available_now:
        plan = replace(plan, trigger_ms=None)
    servers = bootstrap or plan.bootstrap or os.environ.get(BOOTSTRAP_VARIABLE) or DEFAULT_BOOTSTRAP
    try:
        if read is None:
            check_clusters(plan, servers)
        with lock_checkpoint(plan.checkpoint):
            log = (log or log_path(plan)) if spark is None else log
            with _session(plan, master, spark, log) as session:
                if on_session is not None:
                    on_session()
                return _run(plan, session, servers, tell, stopping, log, read)
    except PreflightFailed as error:
        return RunOutcome(ending=RunEnding.FAILED, accounts={}, reason=str(error), log=None)
    except _FORESEEN as error:
        return RunOutcome(ending=RunEnding.FAILED, accounts={}, reason=str(error), log=log)
    except OSError as error:
        reason = f"{error.filename or 'a file'}: {error.strerror or error}"
        return RunOutcome(ending=RunEnding.FAILED, accounts={}, reason=reason, log=None)
    except (PySparkException, Py4JError) as error:
        _note(log, str(error))
        return RunOutcome(
            ending=RunEnding.FAILED, accounts={}, reason=first_sentence(str(error)), log=log
        )


def _run(
    plan: PipelinePlan,
    session: SparkSession,
    servers: str,
    tell: EventListener,
    stopping: StopSignal,
    log: str | None,
    read: Reader | None,
) -> RunOutcome:
    store = store_for(plan.checkpoint, session)
    for key in changes_since(store, plan.checkpoint, plan):
        tell(
            PipelineWarning(
                text=f"{key} has changed since the checkpoint was made:"
                " what was already read and written stays as it was"
            )
        )
    # Times that every reader of Parquet understands; Spark's own INT96 is long out of use.
    session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    frames = Frames(session, plan, read or topic_reader(session, bootstrap=servers))
    frames.build()
    save_plan(store, plan.checkpoint, plan)
    run = QueryRunner(
        session,
        plan,
        frames,
        bootstrap=servers,
        run_id=secrets.token_hex(4),
        tell=tell,
        stopping=stopping,
        log=log,
    )
    return run.run()


@contextmanager
def _session(
    plan: PipelinePlan, master: str | None, spark: SparkSession | None, log: str | None
) -> Iterator[SparkSession]:
    """The given session's twin with views of its own, or a new Spark that ends with the run."""
    if spark is not None:
        twin = spark.newSession()
        for key, value in plan.spark.items():
            twin.conf.set(key, value)
        yield twin
        return
    is_new = SparkContext._active_spark_context is None
    settings = {**_SETTINGS, **plan.spark}
    if is_new:
        hush()
    with output_to(log if is_new else None):
        made = spark_session(app="tidelog pipeline", master=master or plan.master, extra=settings)
    try:
        yield made.newSession()
    finally:
        if is_new:
            made.stop()


def hush() -> None:
    """Spark's Python writes a page to standard error for each error that it raises, too."""
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


@contextmanager
def output_to(log: str | None) -> Iterator[None]:
    """What programs write that are started meanwhile goes to a file: Spark's JVM says a lot, and
    goes on saying it there."""
    if log is None:
        yield
        return
    opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    kept = [os.dup(1), os.dup(2)]
    try:
        os.dup2(opened, 1)
        os.dup2(opened, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), kept, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(opened)


def log_path(plan: PipelinePlan) -> str:
    """Beside a local checkpoint's other files; else a temporary one."""
    if plan.checkpoint.startswith("/"):
        Path(plan.checkpoint).mkdir(parents=True, exist_ok=True)
        return f"{plan.checkpoint}/{LOG_FILE}"
    return os.path.join(tempfile.mkdtemp(prefix="tidelog-pipeline-"), LOG_FILE)


def _note(log: str | None, text: str) -> None:
    if log is not None:
        with open(log, "a", encoding="utf-8") as file:
            file.write(text + "\n")
