"""`format("tidelog")` for writing: a stream whose batches are published once, a frame in one piece.

Spark makes the writer beside the driver, pickles it for the tasks, and makes another one elsewhere
to commit: nothing lives from batch to batch. So the transaction is opened when the writer is
pickled, everything else travels in the messages of the tasks (`client.sink.errand`). Spark lets no
Python source choose which task gets which row: an output partition must be in one task, which
`tidelog.spark.arranged(frame, ...)` sees to.
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

from tidelog.client.shells.sink_errand import StatelessSink
from tidelog.client.sink.errors import GuardFailed, SinkError, SinkRefused
from tidelog.client.sink.marker import Published
from tidelog.client.sink.values import Begun, Receipt, name_of
from tidelog.spark.sink.options import plan_of_options
from tidelog.spark.sink.places import PLACE, Places
from tidelog.spark.sink.plan import SinkPlan
from tidelog.spark.sink.running_query import BATCH_ID_PROPERTY, QUERY_ID_PROPERTY
from tidelog.spark.sink.shape import KEY, PARTITION, TOPIC, Shape, shape_of, shaped_batch
from tidelog.spark.sink.writing import write_rows

UNKNOWN_SOURCE = "unknown"
"""A Python data source is not told from which offsets its rows come."""
Messages = Sequence[WriterCommitMessage | None]
_JOB_GROUP_PROPERTY = "spark.jobGroup.id"
_ARRANGE = (
    "the rows of one output partition must be in one task: use tidelog.spark.arranged(frame, ...)"
    " before, or foreachBatch(tidelog.spark.exactly_once(...))"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReport(WriterCommitMessage):
    """What a task has written, for which batch of which query, or why it could not."""

    begun: Begun
    receipts: tuple[Receipt, ...]
    error: SinkError | None
    query_id: str | None
    batch_id: int | None
    run_id: str | None


class _Ticket:
    """A plan, and a transaction that is opened when this is sent to the tasks, and only then."""

    def __init__(self, plan: SinkPlan, shape: Shape) -> None:
        self.plan = plan
        self.shape = dict(shape)
        self.begun: Begun | None = None

    def __getstate__(self) -> dict[str, object]:
        if self.begun is None:
            with errand(self.plan) as leader:
                timeout_ms = self.plan.transaction_timeout_ms
                self.begun = leader.open(self.plan.topics, transaction_timeout_ms=timeout_ms)
        return {"plan": self.plan, "shape": self.shape, "begun": self.begun}

    def write(self, batches: Iterator[pa.RecordBatch]) -> TaskReport:
        """In a task."""
        assert self.begun is not None, "opened before it was sent"
        context = TaskContext.get()
        if context is None:
            raise SinkRefused("this is no task of Spark")
        batch_id = context.getLocalProperty(BATCH_ID_PROPERTY)
        receipts: Sequence[Receipt] = ()
        error: SinkError | None = None
        try:
            places = Places.of(self.begun.end_offsets)
            rows = (
                with_place(shaped_batch(batch, self.shape), places, task=context.partitionId())
                for batch in batches
            )
            receipts = write_rows(self.plan, self.begun, rows, salt=context.taskAttemptId())
        except SinkError as told:
            error = told
        return TaskReport(
            begun=self.begun,
            receipts=tuple(receipts),
            error=error,
            query_id=context.getLocalProperty(QUERY_ID_PROPERTY),
            batch_id=None if batch_id is None else int(batch_id),
            run_id=context.getLocalProperty(_JOB_GROUP_PROPERTY),
        )


class BatchWriter(DataSourceArrowWriter):
    """`frame.write.format("tidelog")`: all rows in one transaction, or none."""

    def __init__(self, options: Mapping[str, str], schema: StructType, *, overwrite: bool) -> None:
        if overwrite:
            raise SinkRefused("a topic can only be appended to: use mode('append')")
        plan = plan_of_options(options, default_id=f"write-{uuid.uuid4().hex}")
        self._ticket = _Ticket(plan, shape_of(schema, topic=plan.topic))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        return self._ticket.write(iterator)

    def commit(self, messages: Messages) -> None:
        begun, reports = _reports(messages)
        with errand(self._ticket.plan) as leader:
            leader.publish_alone(begun, _receipts(leader, begun, reports))

    def abort(self, messages: Messages) -> None:
        _abandon(self._ticket.plan, self._ticket.begun)


class StreamWriter(DataSourceStreamArrowWriter):
    """`stream.writeStream.format("tidelog")`: every micro-batch in one transaction, once."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        plan = plan_of_options(options, default_id=None)
        self._ticket = _Ticket(plan, shape_of(schema, topic=plan.topic))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> TaskReport:
        return self._ticket.write(iterator)

    def commit(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's
        begun, reports = _reports(messages)
        plan = self._ticket.plan
        with errand(plan) as leader:
            receipts = _receipts(leader, begun, reports)
            query_id, run_id = _whose(leader, begun, reports, batchId)
            offered = Published(query_id=query_id, batch_id=batchId, source_hash=UNKNOWN_SOURCE)
            leader.publish_numbered(
                begun, receipts, offered, run_id=run_id, resume_at=plan.resume_at
            )

    def abort(self, messages: Messages, batchId: int) -> None:  # noqa: N803 - Spark's
        reports = [each for each in messages if isinstance(each, TaskReport)]
        _abandon(self._ticket.plan, reports[0].begun if reports else None)


def errand(plan: SinkPlan) -> StatelessSink:
    return StatelessSink(plan.client_settings, name_of(plan.sink_id))


def with_place(batch: pa.RecordBatch, places: Places, *, task: int) -> pa.RecordBatch:
    """Shaped rows with the place where they go, and without the columns that decided it."""
    found = {
        name: batch.column(name) for name in (TOPIC, KEY, PARTITION) if name in batch.schema.names
    }
    numbers = places.of_rows(
        topics=found.get(TOPIC),
        keys=found.get(KEY),
        partitions=found.get(PARTITION),
        rows=batch.num_rows,
        task=task,
    )
    kept = [name for name in batch.schema.names if name not in (TOPIC, PARTITION)]
    arrays = [batch.column(name) for name in kept]
    return pa.RecordBatch.from_arrays([*arrays, pa.array(numbers)], names=[*kept, PLACE])


def _reports(messages: Messages) -> tuple[Begun, list[TaskReport]]:
    reports = [each for each in messages if isinstance(each, TaskReport)]
    if not reports or len(reports) != len(messages):
        raise SinkRefused("Spark did not hand over what its tasks had reported")
    return reports[0].begun, reports


def _receipts(leader: StatelessSink, begun: Begun, reports: Sequence[TaskReport]) -> list[Receipt]:
    """What all tasks wrote; the error of one of them, once the batch is aborted."""
    errors = [each.error for each in reports if each.error is not None]
    written = [receipt.place for each in reports for receipt in each.receipts]
    if errors or len(set(written)) < len(written):
        leader.abandon(begun)
    if len(set(written)) < len(written):
        raise SinkRefused(f"several tasks wrote one partition: {_ARRANGE}")
    if errors:
        error = max(errors, key=lambda each: each.is_final)
        if isinstance(error, GuardFailed):
            raise GuardFailed(f"{error}. If no task was run twice: {_ARRANGE}")
        raise error
    return [receipt for each in reports for receipt in each.receipts]


def _whose(
    leader: StatelessSink, begun: Begun, reports: Sequence[TaskReport], batch_id: int
) -> tuple[str, str]:
    """The query and the run, of which all tasks must say the same."""
    told = {(each.query_id, each.batch_id, each.run_id) for each in reports}
    (query_id, told_batch_id, run_id), *others = told
    if others or query_id is None or run_id is None or told_batch_id != batch_id:
        leader.abandon(begun)
        raise SinkRefused(
            f"Spark does not tell its tasks which batch of which query they are"
            f" ({QUERY_ID_PROPERTY}, {BATCH_ID_PROPERTY}), so nothing can be published once: use"
            f" foreachBatch(tidelog.spark.exactly_once(...))"
        )
    return query_id, run_id


def _abandon(plan: SinkPlan, begun: Begun | None) -> None:
    """Nothing to do if nobody knows of a transaction: the next batch, or its timeout, ends it."""
    if begun is not None:
        with errand(plan) as leader:
            leader.abandon(begun)
