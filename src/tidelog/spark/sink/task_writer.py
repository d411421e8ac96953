"""One task of a batch: its rows as record batches, into the driver's transaction.

It is sent to the workers, so it holds nothing but values. Rows come in Arrow batches; the rows of
one partition are gathered until they fill a record batch or two, so that many partitions do not
mean many small requests.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tidelog.client.shells.sink_task import SinkTask
from tidelog.client.sink.errors import SinkError
from tidelog.client.sink.options import SinkOptions
from tidelog.client.sink.values import BatchTicket, Receipt
from tidelog.core.model.ids import TopicPartition
from tidelog.spark.columns.encode import EncodedBatch, WriterIdentity, encode
from tidelog.spark.sink.output_partitions import OUTPUT, OutputPartitions
from tidelog.spark.sink.receipts import table_of, table_of_error

_GATHERED_BATCHES = 2
_GATHERED_BYTES_MAX = 64 * 2**20
"""Of all partitions together."""


@dataclass(frozen=True, slots=True)
class TaskWriter:
    """A function for `mapInArrow`: rows in, receipts out."""

    options: SinkOptions
    ticket: BatchTicket

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        salt = 0 if context is None else context.taskAttemptId()
        try:
            yield table_of(write_rows(self.options, self.ticket, batches, salt=salt))
        except SinkError as error:
            for _ in batches:
                continue  # Spark waits for a task that does not read its input
            yield table_of_error(error)


def write_rows(
    options: SinkOptions, ticket: BatchTicket, batches: Iterator[pa.RecordBatch], *, salt: int
) -> list[Receipt]:
    """Write all rows to their output partitions, and wait until they are acknowledged."""
    gc.freeze()  # Spark collects after every task; what is loaded by now stays anyway
    with SinkTask(options.client_settings, ticket, salt=salt) as task:
        partitions = _Partitions(options, ticket, task)
        for batch in batches:
            partitions.add(batch)
        partitions.flush()
        return task.finish()


class _Partitions:
    """Rows on their way, by the partition that they go to."""

    def __init__(self, options: SinkOptions, ticket: BatchTicket, task: SinkTask) -> None:
        self._options = options
        self._task = task
        self._outputs = OutputPartitions.of(ticket.end_offsets)
        self._identity = WriterIdentity(
            producer_id=ticket.identity.producer_id,
            producer_epoch=ticket.identity.producer_epoch,
        )
        self._gathered: dict[int, list[pa.RecordBatch]] = {}
        self._sizes: dict[int, int] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        numbers = batch.column(OUTPUT).to_numpy(zero_copy_only=False)
        columns = batch.drop_columns([OUTPUT])
        size_bytes = columns.nbytes / batch.num_rows
        for output, rows in _by_output(columns, numbers):
            self._gathered.setdefault(output, []).append(rows)
            self._sizes[output] = self._sizes.get(output, 0) + int(size_bytes * rows.num_rows)
            if self._sizes[output] >= _GATHERED_BATCHES * self._options.batch_bytes:
                self._write(output)
        while sum(self._sizes.values()) > _GATHERED_BYTES_MAX:
            self._write(max(self._sizes, key=lambda output: self._sizes[output]))

    def flush(self) -> None:
        for output in sorted(self._gathered):
            self._write(output)

    def _write(self, output: int) -> None:
        partition = self._outputs.partition(output)
        gathered = self._gathered.pop(output)
        del self._sizes[output]
        rows = gathered[0] if len(gathered) == 1 else pa.concat_batches(gathered)
        self._task.write(partition.topic, partition.index, self._encoded(partition, rows))

    def _encoded(self, partition: TopicPartition, rows: pa.RecordBatch) -> Iterator[EncodedBatch]:
        return encode(
            rows,
            identity=self._identity,
            base_sequence=self._task.next_sequence(partition.topic, partition.index),
            first_batch_records_max=self._task.first_batch_records_max(
                partition.topic, partition.index, available=rows.num_rows
            ),
            batch_bytes_max=self._options.batch_bytes,
            compression=self._options.compression,
            now_ms=time.time_ns() // 1_000_000,
        )


def _by_output(
    rows: pa.RecordBatch, numbers: NDArray[np.int32]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each output partition, in their order."""
    first = int(numbers[0])
    if (numbers == first).all():
        yield first, rows
        return
    order = np.argsort(numbers, kind="stable")
    ordered = rows.take(pa.array(order))
    borders = np.flatnonzero(np.diff(numbers[order])) + 1
    start = 0
    for end in (*borders.tolist(), rows.num_rows):
        yield int(numbers[order[start]]), ordered.slice(start, end - start)
        start = end
