"""From a plan to its outcome: checkpoint locked, session started, views built, queries run."""

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
_EXPECTED_ERRORS = (CheckpointUnusable, FrameRefused, TableRefused)


def run_plan(
    plan: PipelinePlan,
    *,
    bootstrap: str | None,
    master: str | None,
    is_available_now: bool,
    spark: SparkSession | None,
    on_event: EventListener,
    stop: StopSignal,
    log: str | None,
    read: Reader | None = None,
    on_session: Callable[[], None] | None = None,
) -> RunOutcome:
    """Run until it ends, fails or is stopped; a failure is an outcome, not an exception."""
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
                return _run(plan, session, servers, on_event, stop, log, read)
    except PreflightFailed as error:
        return RunOutcome(ending=RunEnding.FAILED, accounts={}, reason=str(error), log=None)
    except _EXPECTED_ERRORS as error:
        return RunOutcome(ending=RunEnding.FAILED, accounts={}, reason=str(error), log=log)
    except OSError as error:
        reason = f"{error.filename or 'a file'}: {error.strerror or error}"
        return RunOutcome(ending=RunEnding.FAILED, accounts={}, reason=reason, log=None)
    except (PySparkException, Py4JError) as error:
        _append(log, str(error))
        return RunOutcome(
            ending=RunEnding.FAILED, accounts={}, reason=first_sentence(str(error)), log=log
        )


def _run(
    plan: PipelinePlan,
    session: SparkSession,
    servers: str,
    on_event: EventListener,
    stop: StopSignal,
    log: str | None,
    read: Reader | None,
) -> RunOutcome:
    store = store_for(plan.checkpoint, session)
    for key in changes_since(store, plan.checkpoint, plan):
        on_event(
            PipelineWarning(
                text=f"{key} has changed since the checkpoint was made:"
                " what was already read and written stays as it was"
            )
        )
    # Times that every reader of Parquet understands; Spark's default INT96 is obsolete.
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
        on_event=on_event,
        stop=stop,
        log=log,
    )
    return run.run()


@contextmanager
def _session(
    plan: PipelinePlan, master: str | None, spark: SparkSession | None, log: str | None
) -> Iterator[SparkSession]:
    """A new session in the given Spark, or in a new Spark that ends with the run."""
    if spark is not None:
        child = spark.newSession()
        for key, value in plan.spark.items():
            child.conf.set(key, value)
        yield child
        return
    is_new = SparkContext._active_spark_context is None
    settings = {**_SETTINGS, **plan.spark}
    with output_to(log if is_new else None):
        made = spark_session(app="tidelog pipeline", master=master or plan.master, extra=settings)
    try:
        yield made.newSession()
    finally:
        if is_new:
            made.stop()


@contextmanager
def output_to(log: str | None) -> Iterator[None]:
    """Output of processes that are started meanwhile goes to a file: Spark's JVM writes a lot,
    and continues to write it there."""
    if log is None:
        yield
        return
    opened = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    sys.stdout.flush()
    sys.stderr.flush()
    copies = [os.dup(1), os.dup(2)]
    try:
        os.dup2(opened, 1)
        os.dup2(opened, 2)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((1, 2), copies, strict=True):
            os.dup2(copy, number)
            os.close(copy)
        os.close(opened)


def log_path(plan: PipelinePlan) -> str:
    """Beside a local checkpoint's other files; else a temporary one."""
    if plan.checkpoint.startswith("/"):
        Path(plan.checkpoint).mkdir(parents=True, exist_ok=True)
        return f"{plan.checkpoint}/{LOG_FILE}"
    return os.path.join(tempfile.mkdtemp(prefix="tidelog-pipeline-"), LOG_FILE)


def _append(log: str | None, text: str) -> None:
    if log is not None:
        with open(log, "a", encoding="utf-8") as file:
            file.write(text + "\n")
