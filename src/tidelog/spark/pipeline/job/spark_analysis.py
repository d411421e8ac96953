"""Spark's own analysis of a plan, without running it: columns, types, unsupported operations."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tidelog.spark.pipeline.file.diagnostics import Diagnostic, in_file_order
from tidelog.spark.pipeline.file.plan import PipelinePlan, SinkSpec, SourceSpec
from tidelog.spark.pipeline.file.plan_check import CheckedPlan
from tidelog.spark.pipeline.job.error_summary import first_sentence
from tidelog.spark.pipeline.job.frames import FrameRefused, Frames, sink_rows
from tidelog.spark.pipeline.job.plan_runner import output_to
from tidelog.spark.session import spark_session

_RECORD = {
    "key": "BINARY",
    "value": "BINARY",
    "topic": "STRING",
    "partition": "INT",
    "offset": "BIGINT",
    "timestamp": "TIMESTAMP",
    "timestampType": "INT",
}
_HEADERS = {"headers": "ARRAY<STRUCT<key: STRING, value: BINARY>>"}


def analyse(checked: CheckedPlan, spark: SparkSession | None = None) -> CheckedPlan:
    """Adds an error if Spark does not accept the plan; starts a Spark if none is given."""
    plan = checked.plan
    assert plan is not None
    if spark is not None:
        refused = find_refusal(plan, spark.newSession())
    else:
        with tempfile.TemporaryDirectory(prefix="tidelog-pipeline-") as directory:
            with output_to(os.path.join(directory, "spark.log")):
                made = spark_session(app="tidelog pipeline check", master="local[1]")
            try:
                refused = find_refusal(plan, made.newSession())
            finally:
                made.stop()
    if refused is None:
        return checked
    line = checked.line_of(refused.key)
    error = Diagnostic(line=line, key=refused.key, text=refused.reason)
    return replace(
        checked, plan=None, diagnostics=tuple(in_file_order([*checked.diagnostics, error]))
    )


def find_refusal(plan: PipelinePlan, spark: SparkSession) -> FrameRefused | None:
    """The first part of the plan that Spark refuses."""

    def read(source: SourceSpec) -> DataFrame:
        """A stream with the columns of a topic and no records."""
        has_headers = source.options.get("includeHeaders", "").lower() == "true"
        columns = {**_RECORD, **_HEADERS} if has_headers else _RECORD
        nothing = [f"CAST(NULL AS {kind}) AS `{name}`" for name, kind in columns.items()]
        return spark.readStream.format("rate").load().selectExpr(*nothing)

    frames = Frames(spark, plan, read)
    try:
        views = frames.build()
        for sink in plan.sinks:
            _check_sink(spark, sink, sink_rows(views[sink.view], sink))
    except FrameRefused as refused:
        return refused
    return None


def _check_sink(spark: SparkSession, sink: SinkSpec, frame: DataFrame) -> None:
    """The check that Spark makes when a query starts."""
    analysis = spark._jvm.org.apache.spark.sql.catalyst.analysis  # type: ignore[union-attr]
    modes = spark._jvm.org.apache.spark.sql.streaming.OutputMode  # type: ignore[union-attr]
    mode = modes.Update() if sink.mode == "update" else modes.Append()
    try:
        analysis.UnsupportedOperationChecker.checkForStreaming(
            frame._jdf.queryExecution().analyzed(), mode
        )
    except PySparkException as error:
        raise FrameRefused(f"sinks.{sink.name}", first_sentence(str(error))) from None
