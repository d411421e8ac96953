"""What a sink's query does with each batch: publish it once, in a table or in a topic."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, SparkSession

from tidelog.core.model.exceptions import TidelogError
from tidelog.spark.pipeline.file.plan import BATCH_COLUMN, TableTarget, TopicTarget
from tidelog.spark.pipeline.job.checkpoint import offer_of, offsets_path
from tidelog.spark.pipeline.table.ledger import TableRefused
from tidelog.spark.pipeline.table.stores import LocalStore, Store, store_for
from tidelog.spark.pipeline.table.table import Table
from tidelog.spark.sink.exactly_once import ExactlyOnce, exactly_once

BatchFunction = Callable[[DataFrame, int], None]


class StopRequested(TidelogError):
    """A batch was not started, because the pipeline stops; the next run starts with it."""


class TableSink:
    """Batches into a table."""

    def __init__(
        self, spark: SparkSession, target: TableTarget, *, checkpoint: str, run_id: str
    ) -> None:
        self._target = target
        self._checkpoint = checkpoint
        self._checkpoints = store_for(checkpoint, spark)
        store = store_for(target.path, spark)
        self._table = Table(
            target.path, store=store, run_id=run_id, count=_row_counter(spark, store)
        )

    def open(self) -> None:
        self._table.open()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        if BATCH_COLUMN in [name.lower() for name in frame.columns]:
            raise TableRefused(f"a table's rows cannot have a column {BATCH_COLUMN!r} of their own")
        offer = offer_of(self._checkpoints, self._checkpoint, batch_id)
        published = self._table.publish(
            offer,
            write=lambda path: self._write(frame, path),
            before_commit=lambda: self._sync_offsets(batch_id),
        )
        if not published.is_new:
            # The rows are published already. But Spark's state of this batch may be missing.
            compute_without_output(frame)

    def _write(self, frame: DataFrame, path: str) -> None:
        writer = frame.write.option("mapreduce.fileoutputcommitter.marksuccessfuljobs", "false")
        if self._target.partition_by:
            writer = writer.partitionBy(*self._target.partition_by)
        writer.options(**self._target.options).parquet(spark_path(path))

    def _sync_offsets(self, batch_id: int) -> None:
        """Spark does not sync them. A power loss must not leave rows without their offsets: the
        batch would be retried with others, and could not be distinguished from a new one."""
        self._checkpoints.sync(offsets_path(self._checkpoint, batch_id))
        self._checkpoints.sync(f"{self._checkpoint}/metadata")


def topic_sink(target: TopicTarget, *, bootstrap: str) -> ExactlyOnce:
    """Batches into a topic, each as one transaction."""
    servers = target.bootstrap or bootstrap
    return exactly_once(servers, target.sink_id, topic=target.topic, **target.options)


class MonitoredSink:
    """A sink's function that knows its start time, refuses batches on stop, and keeps its error."""

    def __init__(self, function: BatchFunction, stop: threading.Event) -> None:
        self._function = function
        self._stop = stop
        self.began_s: float | None = None
        """Start of the running batch, on the monotonic clock."""
        self.error: Exception | None = None

    @property
    def open_s(self) -> float | None:
        """How long a batch has been with the sink; for a topic, the age of its transaction."""
        if isinstance(self._function, ExactlyOnce):
            age_ms = self._function.transaction_age_ms
            return None if age_ms is None else age_ms / 1_000
        began_s = self.began_s
        return None if began_s is None else time.monotonic() - began_s

    def close(self) -> None:
        """When the query has ended."""
        if isinstance(self._function, ExactlyOnce):
            self._function.close()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        if self._stop.is_set():
            self.error = StopRequested(f"batch {batch_id} was not begun")
            raise self.error
        self.began_s = time.monotonic()
        try:
            self._function(frame, batch_id)
        except Exception as error:
            self.error = error
            raise
        finally:
            self.began_s = None


def compute_without_output(frame: DataFrame) -> None:
    """Compute everything and write nothing."""
    frame.write.format("noop").mode("overwrite").save()


def spark_path(path: str) -> str:
    """A local path stays local, whatever the default file system of the cluster is."""
    return f"file://{path}" if path.startswith("/") else path


def _row_counter(spark: SparkSession, store: Store) -> Callable[[Sequence[str]], int]:
    """Rows of Parquet files, from their footers."""

    def count(files: Sequence[str]) -> int:
        if not files:
            return 0
        if not isinstance(store, LocalStore):
            return spark.read.parquet(*files).count()
        from pyarrow.parquet import read_metadata

        return sum(int(read_metadata(path).num_rows) for path in files)

    return count
