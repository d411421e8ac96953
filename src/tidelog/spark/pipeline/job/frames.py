"""Sources and steps as Spark views: read, parsed, deduplicated, queried; and counted."""

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
        """All records of all sources that cannot be parsed: raw, with position and reason."""
        parts = [
            self._with_reason(source)
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
        frame = _analysed(key, lambda: self._parsed(source))
        return _with_watermark(key, source.name, frame, source.watermark, source.deduplicate)

    def _of_step(self, step: StepSpec) -> DataFrame:
        key = f"steps.{step.name}"
        function, sql = step.function, step.sql
        if function is not None:
            frame = _analysed(f"{key}.function", lambda: function(dict(self.views)))
        else:
            assert sql is not None
            frame = _analysed(f"{key}.sql", lambda: self._spark.sql(sql))
        return _with_watermark(key, step.name, frame, step.watermark, step.deduplicate)

    def _parsed(self, source: SourceSpec) -> DataFrame:
        if source.columns is None:
            return self._read(source).observe(f"source:{source.name}", _counted("read"))
        records = self._with_reason(source)
        is_valid = _or_fail() if source.fails_on_bad_records else col(REASON).isNull()
        has_headers = "headers" in records.columns
        own = METADATA_COLUMNS if has_headers else METADATA_COLUMNS[:-1]
        metadata = [col(name.removeprefix("_")).alias(name) for name in own]
        columns = [expr(each) for each in column_expressions(source.columns)]
        return records.filter(is_valid).select(*columns, *metadata)

    def _with_reason(self, source: SourceSpec) -> DataFrame:
        """Every record, parsed, with the reason if it is dead; counted."""
        assert source.columns is not None
        records = (
            self._read(source)
            .withColumn(PARSED, expr(parsed_expression(source.columns)))
            .withColumn(REASON, expr(reason_expression(source.columns)))
        )
        dead = count(col(REASON)).alias("dead")
        return records.observe(f"source:{source.name}", _counted("read"), dead)


def _or_fail() -> Column:
    """True for a valid record; a dead one fails the query with a message that names it."""
    position = concat(concat_ws("-", "topic", "partition"), lit(" offset "), col("offset"))
    message = concat(lit("bad record at "), position, lit(": "), col(REASON))
    failed = raise_error(message).cast("boolean")
    return when(col(REASON).isNotNull(), failed).otherwise(lit(True))


def _with_watermark(
    key: str,
    name: str,
    frame: DataFrame,
    watermark: Watermark | None,
    deduplicate: tuple[str, ...],
) -> DataFrame:
    """With watermark and deduplication; the watermark first, since it bounds deduplication."""
    if watermark is not None:
        column, delay = watermark.column, f"{watermark.delay_ms} milliseconds"
        plain = frame
        frame = _analysed(f"{key}.watermark", lambda: plain.withWatermark(column, delay))
    if deduplicate:
        arrived = frame.observe(f"arrived:{name}", _counted("rows"))
        frame = _analysed(
            f"{key}.deduplicate",
            lambda: arrived.dropDuplicatesWithinWatermark(list(deduplicate)),
        )
        frame = frame.observe(f"kept:{name}", _counted("rows"))
    return frame


def _analysed(key: str, make: Callable[[], DataFrame]) -> DataFrame:
    try:
        frame = make()
        _ = frame.schema  # Spark analyses the query when it is asked for the columns
    except PySparkException as error:
        raise FrameRefused(key, first_sentence(str(error))) from None
    return frame


def _counted(name: str) -> Column:
    return count(lit(1)).alias(name)


def count_sink_rows(frame: DataFrame) -> DataFrame:
    """Count what goes into a sink."""
    return frame.observe("sink", _counted("rows"))


def sink_rows(frame: DataFrame, sink: SinkSpec) -> DataFrame:
    """Rows in the form that the sink takes; FrameRefused names the key that does not fit."""
    key, target = f"sinks.{sink.name}", sink.target
    if isinstance(target, TableTarget):
        known = [name.lower() for name in frame.columns]
        for name in target.partition_by:
            if name.lower() not in known:
                message = f"there is no column {name!r}; expected one of {', '.join(frame.columns)}"
                raise FrameRefused(f"{key}.partition_by", message)
        return frame
    records = _analysed(f"{key}.key", lambda: _as_records(frame, target))
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
    """A dead letter is the record as it was, with its position and the reason in headers."""
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
