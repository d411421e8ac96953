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
from tidelog.client.sink.values import Begun, Receipt
from tidelog.core.model.ids import TopicPartition
from tidelog.spark.columns.encode import EncodedBatch, WriterIdentity, encode
from tidelog.spark.sink.places import PLACE, Places
from tidelog.spark.sink.plan import SinkPlan
from tidelog.spark.sink.receipts import table_of, table_of_error

_GATHERED_BATCHES = 2
_GATHERED_BYTES_MAX = 64 * 2**20
"""Of all partitions together."""


@dataclass(frozen=True, slots=True)
class Writer:
    """A function for `mapInArrow`: rows in, receipts out."""

    plan: SinkPlan
    begun: Begun

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        salt = 0 if context is None else context.taskAttemptId()
        try:
            yield table_of(write_rows(self.plan, self.begun, batches, salt=salt))
        except SinkError as error:
            for _ in batches:
                continue  # Spark waits for a task that does not read its input
            yield table_of_error(error)


def write_rows(
    plan: SinkPlan, begun: Begun, batches: Iterator[pa.RecordBatch], *, salt: int
) -> list[Receipt]:
    """Write all rows to the places that they name, and wait until they are acknowledged."""
    gc.freeze()  # Spark collects after every task; what is loaded by now stays anyway
    with SinkTask(plan.client_settings, begun, salt=salt) as task:
        partitions = _Partitions(plan, begun, task)
        for batch in batches:
            partitions.add(batch)
        partitions.flush()
        return task.finish()


class _Partitions:
    """Rows on their way, by the partition that they go to."""

    def __init__(self, plan: SinkPlan, begun: Begun, task: SinkTask) -> None:
        self._plan = plan
        self._task = task
        self._places = Places.of(begun.end_offsets)
        self._identity = WriterIdentity(
            producer_id=begun.identity.producer_id,
            producer_epoch=begun.identity.producer_epoch,
        )
        self._gathered: dict[int, list[pa.RecordBatch]] = {}
        self._sizes: dict[int, int] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        if batch.num_rows == 0:
            return
        numbers = batch.column(PLACE).to_numpy(zero_copy_only=False)
        columns = batch.drop_columns([PLACE])
        size_bytes = columns.nbytes / batch.num_rows
        for place, rows in _by_place(columns, numbers):
            self._gathered.setdefault(place, []).append(rows)
            self._sizes[place] = self._sizes.get(place, 0) + int(size_bytes * rows.num_rows)
            if self._sizes[place] >= _GATHERED_BATCHES * self._plan.batch_bytes:
                self._write(place)
        while sum(self._sizes.values()) > _GATHERED_BYTES_MAX:
            self._write(max(self._sizes, key=lambda place: self._sizes[place]))

    def flush(self) -> None:
        for place in sorted(self._gathered):
            self._write(place)

    def _write(self, place: int) -> None:
        partition = self._places.partition(place)
        gathered = self._gathered.pop(place)
        del self._sizes[place]
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
            batch_bytes_max=self._plan.batch_bytes,
            compression=self._plan.compression,
            now_ms=time.time_ns() // 1_000_000,
        )


def _by_place(
    rows: pa.RecordBatch, places: NDArray[np.int32]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The rows of each place, in their order."""
    first = int(places[0])
    if (places == first).all():
        yield first, rows
        return
    order = np.argsort(places, kind="stable")
    ordered = rows.take(pa.array(order))
    borders = np.flatnonzero(np.diff(places[order])) + 1
    start = 0
    for end in (*borders.tolist(), rows.num_rows):
        yield int(places[order[start]]), ordered.slice(start, end - start)
        start = end
