"""Runs a plan: one Spark query for each sink, watched until it ends, fails or shall stop."""

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
    dead_as_records,
    into_sink,
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
LAST_WORDS_WITHIN_S = 30.0
STARTS_MAX = 10
_INITIALIZING = "Initializing"
_TOO_SLOW = "Python worker failed to connect back"


@dataclass(slots=True)
class RunningSink:
    """One sink: its query, what it was told to do, and what it has done."""

    sink: SinkSpec
    watched: MonitoredSink
    query: StreamingQuery | None = None
    account: SinkAccount = field(default_factory=SinkAccount)
    is_over: bool = False
    """Its last words have been heard."""


class _Ear(StreamingQueryListener):
    """Takes Spark's reports from its thread to ours."""

    def __init__(self) -> None:
        self.heard: queue.SimpleQueue[tuple[str, dict[str, object] | None]] = queue.SimpleQueue()

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        pass

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802
        progress = json.loads(event.progress.json)
        self.heard.put((str(event.progress.runId), progress))

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802
        pass

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802
        self.heard.put((str(event.runId), None))


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
        tell: EventListener,
        stopping: StopSignal,
        log: str | None,
    ) -> None:
        self._spark = spark
        self._plan = plan
        self._frames = frames
        self._bootstrap = bootstrap
        self._run_id = run_id
        self._tell = tell
        self._stopping = stopping
        self._log = log
        self._not_another = threading.Event()
        self._ear = _Ear()
        self.sinks: list[RunningSink] = []

    def run(self) -> RunOutcome:
        """Until everything has ended; whatever happens no query is left running."""
        self._spark.streams.addListener(self._ear)
        try:
            self._start()
            self._watch()
            return self._outcome()
        finally:
            self._not_another.set()
            for each in self.sinks:
                if each.query is not None and each.query.isActive:
                    each.query.stop()
                each.watched.close()
            self._spark.streams.removeListener(self._ear)

    # Beginning.

    def _start(self) -> None:
        for sink, frame, function in self._wanted():
            watched = MonitoredSink(function, self._not_another)
            running = RunningSink(sink, watched)
            self.sinks.append(running)
            try:
                running.query = self._begun(sink, frame, watched)
            except PySparkException as error:
                raise FrameRefused(f"sinks.{sink.name}", first_sentence(str(error))) from None
        names = tuple(each.sink.name for each in self.sinks)
        self._tell(PipelineStarted(name=self._plan.name, sinks=names, log=self._log))

    def _wanted(self) -> list[tuple[SinkSpec, DataFrame, BatchFunction]]:
        """Every sink with its rows and its function, before any of them begins."""
        wanted = []
        for sink in self._plan.sinks:
            frame = sink_rows(self._frames.views[sink.view], sink)
            wanted.append((sink, frame, self._function(sink)))
        dead = self._frames.dead_letters()
        if dead is not None and self._plan.dead_letters is not None:
            target = self._plan.dead_letters
            sink = SinkSpec(name=DEAD_LETTERS, view=DEAD_LETTERS, target=target)
            frame = dead if isinstance(target, TableTarget) else dead_as_records(dead)
            wanted.append((sink, frame, self._function(sink)))
        return wanted

    def _function(self, sink: SinkSpec) -> BatchFunction:
        if not isinstance(sink.target, TableTarget):
            return topic_sink(sink.target, bootstrap=self._bootstrap)
        checkpoint = query_checkpoint(self._plan.checkpoint, sink.name)
        table = TableSink(self._spark, sink.target, checkpoint=checkpoint, run_id=self._run_id)
        table.open()
        return table

    def _begun(self, sink: SinkSpec, frame: DataFrame, watched: MonitoredSink) -> StreamingQuery:
        """One after the other: a source's Python must begin within ten seconds, says Spark, and
        does not always on a busy machine. Nothing has been read by then, so it is tried again."""
        for attempt in range(STARTS_MAX):
            query = self._start_query(sink, frame, watched)
            while query.isActive and query.status["message"].startswith(_INITIALIZING):
                if self._stopping.is_asked:
                    return query
                self._stopping.pause(0.05)
            error = query.exception()
            if error is None or _TOO_SLOW not in str(error):
                break
            self._tell(
                PipelineWarning(text=f"sink {sink.name}: {first_sentence(str(error))} Once more.")
            )
            self._stopping.wait(float(attempt))
        return query

    def _start_query(
        self, sink: SinkSpec, frame: DataFrame, watched: MonitoredSink
    ) -> StreamingQuery:
        checkpoint = query_checkpoint(self._plan.checkpoint, sink.name)
        writer = (
            into_sink(frame)
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
            self._listen()
            active = [each for each in self.sinks if self._is_active(each)]
            if not active:
                break
            if len(active) < len(self.sinks) and self._failures():
                self._stopping.ask()  # one sink alone would leave the others behind
            if self._stopping.is_asked:
                self._not_another.set()
                self._let_end(active)
            self._tell(self._now(active))
            self._stopping.wait(TICK_S)
        self._hear_last_words()

    def _let_end(self, active: list[RunningSink]) -> None:
        """Between two batches a query is stopped; a batch under way may finish, if it can."""
        for each in active:
            assert each.query is not None
            is_idle = each.watched.began_s is None and not each.query.status["isTriggerActive"]
            if is_idle or self._stopping.is_insisted:
                each.query.stop()

    def _listen(self) -> None:
        by_run = {str(each.query.runId): each for each in self.sinks if each.query is not None}
        while True:
            try:
                run_id, progress = self._ear.heard.get_nowait()
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
                self._tell(BatchCompleted(sink=running.sink.name, report=report))

    def _hear_last_words(self) -> None:
        """Spark's reports come later than its queries end."""
        deadline_s = time.monotonic() + LAST_WORDS_WITHIN_S
        while not all(each.is_over for each in self.sinks) and time.monotonic() < deadline_s:
            self._listen()
            self._stopping.pause(0.02)

    def _now(self, active: list[RunningSink]) -> PipelineStatus:
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
            is_stopping=self._stopping.is_asked,
        )

    @staticmethod
    def _is_active(running: RunningSink) -> bool:
        return running.query is not None and running.query.isActive

    # The end.

    def _failures(self) -> list[tuple[RunningSink, Exception]]:
        """Queries that ended by an error that is not our own wish to stop."""
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
            uneven = account.uneven()
            if uneven is not None:
                self._tell(PipelineWarning(text=f"sink {name}: {uneven}"))
        failures = [] if self._stopping.is_insisted else self._failures()
        if failures:
            reasons = [
                f"sink {each.sink.name}: {failure_reason(each, error)}" for each, error in failures
            ]
            self._write_down(failures)
            return RunOutcome(
                ending=RunEnding.FAILED,
                accounts=accounts,
                reason="; ".join(reasons),
                log=self._log,
            )
        if self._stopping.is_insisted:
            ending = RunEnding.ABANDONED
        else:
            ending = RunEnding.STOPPED if self._stopping.is_asked else RunEnding.FINISHED
        return RunOutcome(ending=ending, accounts=accounts, log=self._log)

    def _write_down(self, failures: list[tuple[RunningSink, Exception]]) -> None:
        """The whole story for the log, of which a person gets one line."""
        if self._log is None:
            return
        with open(self._log, "a", encoding="utf-8") as log:
            for each, error in failures:
                log.write(f"sink {each.sink.name} failed:\n{error}\n")
                if each.watched.error is not None:
                    log.writelines(traceback.format_exception(each.watched.error))


def failure_reason(running: RunningSink, error: Exception) -> str:
    """In one line. What our own code raised is one line already."""
    own = running.watched.error
    if own is not None and not isinstance(own, PySparkException | Py4JError):
        return first_sentence(str(own)) or type(own).__name__
    if isinstance(error, StreamingQueryException):
        return root_cause(str(error))
    return first_sentence(str(error))
