"""`format("tidelog")` for writing: a stream whose batches are published once, a frame in one piece.

Spark makes the writer beside the driver, pickles it for the tasks, and makes another one elsewhere
to commit: nothing lives from batch to batch. So the transaction is opened when the writer is
pickled, everything else travels in the messages of the tasks (`client.sink.stateless_driver`).
Spark lets no Python source choose which task gets which row: an output partition must be in one
task, which `tidelog.spark.arranged(frame, ...)` sees to.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from tidelog.client.shells.sink_driver import StatelessSink
from tidelog.client.sink.errors import GuardFailed, SinkError, SinkRefused
from tidelog.client.sink.marker import BatchIdentity
from tidelog.client.sink.options import SinkOptions
from tidelog.client.sink.values import BatchTicket, Receipt
from tidelog.spark.sink.format_options import read_options
from tidelog.spark.sink.output_partitions import OUTPUT, OutputPartitions
from tidelog.spark.sink.running_query import BATCH_ID_PROPERTY, QUERY_ID_PROPERTY
from tidelog.spark.sink.shape import KEY, PARTITION, TOPIC, Shape, shape_of, shaped_batch
from tidelog.spark.sink.task_writer import write_rows

UNKNOWN_SOURCE = "unknown"
"""A Python data source does not know from which offsets its rows come."""
Messages = Sequence[WriterCommitMessage | None]
_JOB_GROUP_PROPERTY = "spark.jobGroup.id"
_ARRANGE = (
    "the rows of one output partition must be in one task: use tidelog.spark.arranged(frame, ...)"
    " before, or foreachBatch(tidelog.spark.exactly_once(...))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport(WriterCommitMessage):
    """What a task has written, for which batch of which query, or why it could not."""

    ticket: BatchTicket
    receipts: tuple[Receipt, ...]
    error: SinkError | None
    query_id: str | None
    batch_id: int | None
    run_id: str | None


class _WriteJob:
    """The options of a write and its transaction, which is opened when this is sent to tasks."""

    def __init__(self, options: SinkOptions, shape: Shape) -> None:
        self.options = options
        self.shape = dict(shape)
        self.ticket: BatchTicket | None = None

    def __getstate__(self) -> dict[str, object]:
        if self.ticket is None:
            with StatelessSink(self.options) as sink:
                self.ticket = sink.open()
        return {"options": self.options, "shape": self.shape, "ticket": self.ticket}

    def write(self, batches: Iterator[pa.RecordBatch]) -> TaskReport:
        """In a task."""
        assert self.ticket is not None, "opened before it was sent"
        context = TaskContext.get()
        if context is None:
            raise SinkRefused("this is no task of Spark")
        batch_id = context.getLocalProperty(BATCH_ID_PROPERTY)
        receipts: Sequence[Receipt] = ()
        error: SinkError | None = None
        try:
            outputs = OutputPartitions.of(self.ticket.end_offsets)
            rows = (
                with_output(shaped_batch(batch, self.shape), outputs, task=context.partitionId())
                for batch in batches
            )
            receipts = write_rows(self.options, self.ticket, rows, salt=context.taskAttemptId())
        except SinkError as failure:
            error = failure
        return TaskReport(
            ticket=self.ticket,
            receipts=tuple(receipts),
            error=error,
            query_id=context.getLocalProperty(QUERY_ID_PROPERTY),
            batch_id=None if batch_id is None else int(batch_id),
            run_id=context.getLocalProperty(_JOB_GROUP_PROPERTY),
        )


class SinkBatchWriter(DataSourceArrowWriter):
    """`frame.write.format("tidelog")`: all rows in one transaction, or none."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise SinkRefused("a topic can only be appended to: use mode('append')")
        given = read_options(options, default_id=f"write-{uuid.uuid4().hex}")
        self._job = _WriteJob(given, shape_of(schema, topic=given.topic))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        return self._job.write(iterator)

    def commit(self, messages: Messages) -> None:
        ticket, reports = _reports(messages)
        with StatelessSink(self._job.options) as sink:
            sink.publish_alone(ticket, _receipts(sink, ticket, reports))

    def abort(self, messages: Messages) -> None:
        _abandon(self._job.options, self._job.ticket)


class SinkStreamWriter(DataSourceStreamArrowWriter):
    """`stream.writeStream.format("tidelog")`: every micro-batch in one transaction, once."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        given = read_options(options, default_id=None)
        self._job = _WriteJob(given, shape_of(schema, topic=given.topic))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        return self._job.write(iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's
        ticket, reports = _reports(messages)
        with StatelessSink(self._job.options) as sink:
            receipts = _receipts(sink, ticket, reports)
            query_id, run_id = _query_and_run(sink, ticket, reports, batchId)
            offered = BatchIdentity(query_id=query_id, batch_id=batchId, source_hash=UNKNOWN_SOURCE)
            sink.publish_numbered(ticket, receipts, offered, run_id=run_id)

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's
        reports = [each for each in messages if isinstance(each, TaskReport)]
        _abandon(self._job.options, reports[0].ticket if reports else None)


def with_output(batch: pa.RecordBatch, outputs: OutputPartitions, *, task: int) -> pa.RecordBatch:
    """Shaped rows with their output partition, and without the columns that decided it."""
    found = {
        name: batch.column(name) for name in (TOPIC, KEY, PARTITION) if name in batch.schema.names
    }
    numbers = outputs.of_rows(
        topics=found.get(TOPIC),
        keys=found.get(KEY),
        partitions=found.get(PARTITION),
        rows=batch.num_rows,
        task=task,
    )
    kept = [name for name in batch.schema.names if name not in (TOPIC, PARTITION)]
    arrays = [batch.column(name) for name in kept]
    return pa.RecordBatch.from_arrays([*arrays, pa.array(numbers)], names=[*kept, OUTPUT])


def _reports(messages: Messages) -> tuple[BatchTicket, list[TaskReport]]:
    reports = [each for each in messages if isinstance(each, TaskReport)]
    if not reports or len(reports) != len(messages):
        raise SinkRefused("Spark did not hand over what its tasks had reported")
    return reports[0].ticket, reports


def _receipts(
    sink: StatelessSink, ticket: BatchTicket, reports: Sequence[TaskReport]
) -> list[Receipt]:
    """What all tasks wrote; the error of one of them, once the batch is aborted."""
    errors = [each.error for each in reports if each.error is not None]
    written = [receipt.topic_partition for each in reports for receipt in each.receipts]
    if errors or len(set(written)) < len(written):
        sink.abandon(ticket)
    if len(set(written)) < len(written):
        raise SinkRefused(f"several tasks wrote one partition: {_ARRANGE}")
    if errors:
        error = max(errors, key=lambda each: each.is_final)
        if isinstance(error, GuardFailed):
            raise GuardFailed(f"{error}. If no task was run twice: {_ARRANGE}")
        raise error
    return [receipt for each in reports for receipt in each.receipts]


def _query_and_run(
    sink: StatelessSink, ticket: BatchTicket, reports: Sequence[TaskReport], batch_id: int
) -> tuple[str, str]:
    """The query and the run, of which all tasks must say the same."""
    batches = {(each.query_id, each.batch_id, each.run_id) for each in reports}
    (query_id, task_batch_id, run_id), *others = batches
    if others or query_id is None or run_id is None or task_batch_id != batch_id:
        sink.abandon(ticket)
        raise SinkRefused(
            f"Spark does not tell its tasks which batch of which query they are"
            f" ({QUERY_ID_PROPERTY}, {BATCH_ID_PROPERTY}), so nothing can be published once: use"
            f" foreachBatch(tidelog.spark.exactly_once(...))"
        )
    return query_id, run_id


def _abandon(options: SinkOptions, ticket: BatchTicket | None) -> None:
    """Nothing to do if no transaction is known: the next batch, or its timeout, ends it."""
    if ticket is not None:
        with StatelessSink(options) as sink:
            sink.abandon(ticket)
