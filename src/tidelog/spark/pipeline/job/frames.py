"""Sources and steps as Spark views: read, parsed, marked, deduplicated, queried; and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.functions import (
    array,
    col,
    concat,
    concat_ws,
    count,
    expr,
    lit,
    raise_error,
    struct,
    to_json,
    when,
)

from tidelog.client.sink.errors import SinkRefused
from tidelog.core.model.exceptions import TidelogError
from tidelog.spark.pipeline.file.plan import (
    METADATA_COLUMNS,
    PipelinePlan,
    SinkSpec,
    SourceSpec,
    StepSpec,
    TableTarget,
    TopicTarget,
    Watermark,
)
from tidelog.spark.pipeline.job.dead_letters import (
    PARSED,
    REASON,
    column_expressions,
    parsed_expression,
    reason_expression,
)
from tidelog.spark.pipeline.job.error_summary import first_sentence
from tidelog.spark.sink.shape import shape_of

Reader = Callable[[SourceSpec], DataFrame]
"""A source's records, with the columns of Spark's Kafka source."""

_RECORD = ("topic", "partition", "offset", "timestamp", "key", "value")
_HEADERS = ("source", "topic", "partition", "offset", "timestamp", "reason")


class FrameRefused(TidelogError):
    """Spark does not accept a part of the plan; one line, with the key that it is about."""

    def __init__(self, key: str, reason: str) -> None:
        super().__init__(f"{key}: {reason}")
        self.key = key
        self.reason = reason


def topic_reader(spark: SparkSession, *, bootstrap: str) -> Reader:
    """Streams from topics."""

    def read(source: SourceSpec) -> DataFrame:
        stream = spark.readStream.format(source.connector)
        stream = stream.option("kafka.bootstrap.servers", source.bootstrap or bootstrap)
        if source.pattern is not None:
            stream = stream.option("subscribePattern", source.pattern)
        else:
            stream = stream.option("subscribe", ",".join(source.topics))
        return stream.options(**source.options).load()

    return read


class Frames:
    """Every view of a plan in one session, and the dead letters of its sources."""

    def __init__(self, spark: SparkSession, plan: PipelinePlan, read: Reader) -> None:
        self._spark = spark
        self._plan = plan
        self._read = read
        self.views: dict[str, DataFrame] = {}

    def build(self) -> Mapping[str, DataFrame]:
        """By name; FrameRefused names the first key that Spark does not accept."""
        for source in self._plan.sources:
            self._add(source.name, self._of_source(source))
        for step in self._plan.steps:
            self._add(step.name, self._of_step(step))
        return self.views

    def dead_letters(self) -> DataFrame | None:
        """Every record of every source that does not parse: raw, with its place and the reason."""
        parts = [
            self._judged(source)
            .filter(col(REASON).isNotNull())
            .select(lit(source.name).alias("source"), *_RECORD, col(REASON).alias("reason"))
            for source in self._plan.sources
            if source.columns is not None and not source.fails_on_bad_records
        ]
        return reduce(lambda one, other: one.unionByName(other), parts) if parts else None

    def _add(self, name: str, frame: DataFrame) -> None:
        frame.createOrReplaceTempView(name)
        self.views[name] = frame

    def _of_source(self, source: SourceSpec) -> DataFrame:
        key = f"sources.{source.name}"
        frame = _guarded(key, lambda: self._parsed(source))
        return _finished(key, source.name, frame, source.watermark, source.deduplicate)

    def _of_step(self, step: StepSpec) -> DataFrame:
        key = f"steps.{step.name}"
        function, sql = step.function, step.sql
        if function is not None:
            frame = _guarded(f"{key}.function", lambda: function(dict(self.views)))
        else:
            assert sql is not None
            frame = _guarded(f"{key}.sql", lambda: self._spark.sql(sql))
        return _finished(key, step.name, frame, step.watermark, step.deduplicate)

    def _parsed(self, source: SourceSpec) -> DataFrame:
        if source.columns is None:
            return self._read(source).observe(f"source:{source.name}", _counted("read"))
        judged = self._judged(source)
        sound = _or_fail() if source.fails_on_bad_records else col(REASON).isNull()
        has_headers = "headers" in judged.columns
        own = METADATA_COLUMNS if has_headers else METADATA_COLUMNS[:-1]
        metadata = [col(name.removeprefix("_")).alias(name) for name in own]
        columns = [expr(each) for each in column_expressions(source.columns)]
        return judged.filter(sound).select(*columns, *metadata)

    def _judged(self, source: SourceSpec) -> DataFrame:
        """Every record, parsed, with the reason if it is dead; counted."""
        assert source.columns is not None
        judged = (
            self._read(source)
            .withColumn(PARSED, expr(parsed_expression(source.columns)))
            .withColumn(REASON, expr(reason_expression(source.columns)))
        )
        dead = count(col(REASON)).alias("dead")
        return judged.observe(f"source:{source.name}", _counted("read"), dead)


def _or_fail() -> Column:
    """True for a sound record; a dead one ends the query, which then names it."""
    place = concat(concat_ws("-", "topic", "partition"), lit(" offset "), col("offset"))
    told = concat(lit("bad record at "), place, lit(": "), col(REASON))
    failed = raise_error(told).cast("boolean")
    return when(col(REASON).isNotNull(), failed).otherwise(lit(True))


def _finished(
    key: str,
    name: str,
    frame: DataFrame,
    watermark: Watermark | None,
    deduplicate: tuple[str, ...],
) -> DataFrame:
    """Watermark first: deduplication forgets by it."""
    if watermark is not None:
        column, delay = watermark.column, f"{watermark.delay_ms} milliseconds"
        plain = frame
        frame = _guarded(f"{key}.watermark", lambda: plain.withWatermark(column, delay))
    if deduplicate:
        arrived = frame.observe(f"arrived:{name}", _counted("rows"))
        frame = _guarded(
            f"{key}.deduplicate",
            lambda: arrived.dropDuplicatesWithinWatermark(list(deduplicate)),
        )
        frame = frame.observe(f"kept:{name}", _counted("rows"))
    return frame


def _guarded(key: str, make: Callable[[], DataFrame]) -> DataFrame:
    try:
        frame = make()
        _ = frame.schema  # Spark has understood it when it knows the columns
    except PySparkException as error:
        raise FrameRefused(key, first_sentence(str(error))) from None
    return frame


def _counted(name: str) -> Column:
    return count(lit(1)).alias(name)


def into_sink(frame: DataFrame) -> DataFrame:
    """Count what goes into a sink."""
    return frame.observe("sink", _counted("rows"))


def sink_rows(frame: DataFrame, sink: SinkSpec) -> DataFrame:
    """As the sink takes them; FrameRefused names the key that the columns do not fit."""
    key, target = f"sinks.{sink.name}", sink.target
    if isinstance(target, TableTarget):
        known = [name.lower() for name in frame.columns]
        for name in target.partition_by:
            if name.lower() not in known:
                told = f"there is no column {name!r}; there are {', '.join(frame.columns)}"
                raise FrameRefused(f"{key}.partition_by", told)
        return frame
    records = _guarded(f"{key}.key", lambda: _as_records(frame, target))
    try:
        shape_of(records.schema, topic=target.topic)
    except SinkRefused as refused:
        raise FrameRefused(f"{key}.format", str(refused)) from None
    return records


def _as_records(frame: DataFrame, target: TopicTarget) -> DataFrame:
    """Rows as key and value; raw ones bring these columns themselves."""
    if not target.is_json:
        return frame
    value = to_json(struct(*(col(_quoted(name)) for name in frame.columns))).alias("value")
    if target.key is None:
        return frame.select(value)
    return frame.select(col(_quoted(target.key)).cast("string").alias("key"), value)


def dead_as_records(frame: DataFrame) -> DataFrame:
    """A dead letter is the record as it was, with its place and the reason in headers."""
    headers = [
        struct(
            lit(f"tidelog.{name}").alias("key"),
            col(name).cast("string").cast("binary").alias("value"),
        )
        for name in _HEADERS
    ]
    return frame.select("key", "value", array(*headers).alias("headers"))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
