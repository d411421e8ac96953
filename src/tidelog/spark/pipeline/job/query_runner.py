"""Runs a plan: one Spark query for each sink, watched until it ends, fails or is stopped."""

from __future__ import annotations

import json
import queue
import threading
import time
import traceback
from dataclasses import dataclass, field

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)
from pyspark.sql.streaming.query import StreamingQuery

from tidelog.spark.pipeline.file.plan import DEAD_LETTERS, PipelinePlan, SinkSpec, TableTarget
from tidelog.spark.pipeline.job.accounts import SinkAccount, report_of
from tidelog.spark.pipeline.job.checkpoint import query_checkpoint
from tidelog.spark.pipeline.job.error_summary import first_sentence, root_cause
from tidelog.spark.pipeline.job.events import (
    BatchCompleted,
    EventListener,
    PipelineStarted,
    PipelineStatus,
    PipelineWarning,
    RunEnding,
    RunOutcome,
    SinkStatus,
)
from tidelog.spark.pipeline.job.frames import (
    FrameRefused,
    Frames,
    count_sink_rows,
    dead_as_records,
    sink_rows,
)
from tidelog.spark.pipeline.job.sinks import (
    BatchFunction,
    MonitoredSink,
    StopRequested,
    TableSink,
    spark_path,
    topic_sink,
)
from tidelog.spark.pipeline.job.stop_signal import StopSignal

TICK_S = 0.5
LAST_REPORTS_WITHIN_S = 30.0
STARTS_MAX = 10
_INITIALIZING = "Initializing"
_TOO_SLOW = "Python worker failed to connect back"


@dataclass(slots=True)
class RunningSink:
    """One sink: its query, and the account of what it has done."""

    sink: SinkSpec
    watched: MonitoredSink
    query: StreamingQuery | None = None
    account: SinkAccount = field(default_factory=SinkAccount)
    is_over: bool = False
    """Its last report has been received."""


class _ProgressListener(StreamingQueryListener):
    """Passes Spark's reports from its thread to ours."""

    def __init__(self) -> None:
        self.reports: queue.SimpleQueue[tuple[str, dict[str, object] | None]] = queue.SimpleQueue()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = json.loads(event.progress.json)
        self.reports.put((str(event.progress.runId), progress))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self.reports.put((str(event.runId), None))


class QueryRunner:
    """From started queries to the outcome."""

    def __init__(
        self,
        spark: SparkSession,
        plan: PipelinePlan,
        frames: Frames,
        *,
        bootstrap: str,
        run_id: str,
        on_event: EventListener,
        stop: StopSignal,
        log: str | None,
    ) -> None:
        self._spark = spark
        self._plan = plan
        self._frames = frames
        self._bootstrap = bootstrap
        self._run_id = run_id
        self._on_event = on_event
        self._stop = stop
        self._log = log
        self._no_more_batches = threading.Event()
        self._listener = _ProgressListener()
        self.sinks: list[RunningSink] = []

    def run(self) -> RunOutcome:
        """Run until everything has ended; no query is left running, whatever happens."""
        self._spark.streams.addListener(self._listener)
        try:
            self._start()
            self._watch()
            return self._outcome()
        finally:
            self._no_more_batches.set()
            for each in self.sinks:
                if each.query is not None and each.query.isActive:
                    each.query.stop()
                each.watched.close()
            self._spark.streams.removeListener(self._listener)

    # Beginning.

    def _start(self) -> None:
        for sink, frame, function in self._sink_inputs():
            watched = MonitoredSink(function, self._no_more_batches)
            running = RunningSink(sink, watched)
            self.sinks.append(running)
            try:
                running.query = self._start_with_retries(sink, frame, watched)
            except PySparkException as error:
                raise FrameRefused(f"sinks.{sink.name}", first_sentence(str(error))) from None
        names = tuple(each.sink.name for each in self.sinks)
        self._on_event(PipelineStarted(name=self._plan.name, sinks=names, log=self._log))

    def _sink_inputs(self) -> list[tuple[SinkSpec, DataFrame, BatchFunction]]:
        """Every sink with its rows and its function, before any of them begins."""
        inputs = []
        for sink in self._plan.sinks:
            frame = sink_rows(self._frames.views[sink.view], sink)
            inputs.append((sink, frame, self._function(sink)))
        dead = self._frames.dead_letters()
        if dead is not None and self._plan.dead_letters is not None:
            target = self._plan.dead_letters
            sink = SinkSpec(name=DEAD_LETTERS, view=DEAD_LETTERS, target=target)
            frame = dead if isinstance(target, TableTarget) else dead_as_records(dead)
            inputs.append((sink, frame, self._function(sink)))
        return inputs

    def _function(self, sink: SinkSpec) -> BatchFunction:
        if not isinstance(sink.target, TableTarget):
            return topic_sink(sink.target, bootstrap=self._bootstrap)
        checkpoint = query_checkpoint(self._plan.checkpoint, sink.name)
        table = TableSink(self._spark, sink.target, checkpoint=checkpoint, run_id=self._run_id)
        table.open()
        return table

    def _start_with_retries(
        self, sink: SinkSpec, frame: DataFrame, watched: MonitoredSink
    ) -> StreamingQuery:
        """One after the other: Spark demands that a source's Python starts within ten seconds,
        which it does not always do on a busy machine. Nothing has been read by then: retry."""
        for attempt in range(STARTS_MAX):
            query = self._start_query(sink, frame, watched)
            while query.isActive and query.status["message"].startswith(_INITIALIZING):
                if self._stop.is_requested:
                    return query
                self._stop.pause(0.05)
            error = query.exception()
            if error is None or _TOO_SLOW not in str(error):
                break
            self._on_event(
                PipelineWarning(text=f"sink {sink.name}: {first_sentence(str(error))} Retrying.")
            )
            self._stop.wait(float(attempt))
        return query

    def _start_query(
        self, sink: SinkSpec, frame: DataFrame, watched: MonitoredSink
    ) -> StreamingQuery:
        checkpoint = query_checkpoint(self._plan.checkpoint, sink.name)
        writer = (
            count_sink_rows(frame)
            .writeStream.queryName(f"{self._plan.name}.{sink.name}")
            .option("checkpointLocation", spark_path(checkpoint))
            .outputMode(sink.mode)
            .foreachBatch(watched)
        )
        if self._plan.trigger_ms is None:
            writer = writer.trigger(availableNow=True)
        else:
            writer = writer.trigger(processingTime=f"{self._plan.trigger_ms} milliseconds")
        return writer.start()

    # Watching.

    def _watch(self) -> None:
        while True:
            self._take_reports()
            active = [each for each in self.sinks if self._is_active(each)]
            if not active:
                break
            if len(active) < len(self.sinks) and self._failures():
                self._stop.request()  # the other sinks must not run ahead of the failed one
            if self._stop.is_requested:
                self._no_more_batches.set()
                self._stop_idle(active)
            self._on_event(self._status(active))
            self._stop.wait(TICK_S)
        self._take_last_reports()

    def _stop_idle(self, active: list[RunningSink]) -> None:
        """Stop queries between two batches; a running batch may finish, unless it is forced."""
        for each in active:
            assert each.query is not None
            is_idle = each.watched.began_s is None and not each.query.status["isTriggerActive"]
            if is_idle or self._stop.is_forced:
                each.query.stop()

    def _take_reports(self) -> None:
        by_run = {str(each.query.runId): each for each in self.sinks if each.query is not None}
        while True:
            try:
                run_id, progress = self._listener.reports.get_nowait()
            except queue.Empty:
                return
            running = by_run.get(run_id)
            if running is None:
                continue
            if progress is None:
                running.is_over = True
                continue
            report = report_of(progress)
            if report is not None:
                running.account.add(report)
                self._on_event(BatchCompleted(sink=running.sink.name, report=report))

    def _take_last_reports(self) -> None:
        """Spark's last reports arrive after its queries have ended."""
        deadline_s = time.monotonic() + LAST_REPORTS_WITHIN_S
        while not all(each.is_over for each in self.sinks) and time.monotonic() < deadline_s:
            self._take_reports()
            self._stop.pause(0.02)

    def _status(self, active: list[RunningSink]) -> PipelineStatus:
        return PipelineStatus(
            sinks=tuple(
                SinkStatus(
                    name=each.sink.name,
                    is_topic=not isinstance(each.sink.target, TableTarget),
                    is_active=each in active,
                    is_busy=each.watched.began_s is not None,
                    open_s=each.watched.open_s,
                    account=each.account,
                )
                for each in self.sinks
            ),
            is_stopping=self._stop.is_requested,
        )

    @staticmethod
    def _is_active(running: RunningSink) -> bool:
        return running.query is not None and running.query.isActive

    # The end.

    def _failures(self) -> list[tuple[RunningSink, Exception]]:
        """Queries that ended with an error that is not our own StopRequested."""
        found: list[tuple[RunningSink, Exception]] = []
        for each in self.sinks:
            if each.query is None or each.query.isActive:
                continue
            error = each.query.exception()
            if error is not None and not isinstance(each.watched.error, StopRequested):
                found.append((each, error))
        return found

    def _outcome(self) -> RunOutcome:
        accounts = {each.sink.name: each.account for each in self.sinks}
        for name, account in accounts.items():
            imbalance = account.imbalance()
            if imbalance is not None:
                self._on_event(PipelineWarning(text=f"sink {name}: {imbalance}"))
        failures = [] if self._stop.is_forced else self._failures()
        if failures:
            reasons = [
                f"sink {each.sink.name}: {failure_reason(each, error)}" for each, error in failures
            ]
            self._log_failures(failures)
            return RunOutcome(
                ending=RunEnding.FAILED,
                accounts=accounts,
                reason="; ".join(reasons),
                log=self._log,
            )
        if self._stop.is_forced:
            ending = RunEnding.ABANDONED
        else:
            ending = RunEnding.STOPPED if self._stop.is_requested else RunEnding.FINISHED
        return RunOutcome(ending=ending, accounts=accounts, log=self._log)

    def _log_failures(self, failures: list[tuple[RunningSink, Exception]]) -> None:
        """Write the full errors to the log; the outcome has one line of them."""
        if self._log is None:
            return
        with open(self._log, "a", encoding="utf-8") as log:
            for each, error in failures:
                log.write(f"sink {each.sink.name} failed:\n{error}\n")
                if each.watched.error is not None:
                    log.writelines(traceback.format_exception(each.watched.error))


def failure_reason(running: RunningSink, error: Exception) -> str:
    """One line. What our own code raised is one line already."""
    own = running.watched.error
    if own is not None and not isinstance(own, PySparkException | Py4JError):
        return first_sentence(str(own)) or type(own).__name__
    if isinstance(error, StreamingQueryException):
        return root_cause(str(error))
    return first_sentence(str(error))
