"""`foreachBatch(exactly_once(...))`: each micro-batch is one transaction, published once.

    sink = tidelog.spark.exactly_once("broker-1:9092", "revenue", topic="revenue-per-minute")
    frame.writeStream.foreachBatch(sink).option("checkpointLocation", ...).start()

The sink id names the memory of the sink in the cluster: one query, one sink id, for good.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pyspark.sql import DataFrame

from tidelog.client.shells.sink_driver import SinkDriver
from tidelog.client.sink.errors import BatchLost, SinkError, SinkRefused
from tidelog.client.sink.options import ATTEMPTS, BATCH_BYTES, SinkOptions
from tidelog.client.sink.values import AlreadyPublished, BatchTicket, Receipt
from tidelog.core.model.trace import Trace
from tidelog.spark.sink.checkpoint_sync import sync_offsets
from tidelog.spark.sink.output_partitions import OutputPartitions
from tidelog.spark.sink.receipts import SPARK_SCHEMA, receipts_of
from tidelog.spark.sink.repartition import repartitioned
from tidelog.spark.sink.running_query import RunningBatch, running_batch
from tidelog.spark.sink.shape import shaped
from tidelog.spark.sink.task_writer import TaskWriter

RENEWAL_CHECK_S = 30.0


def exactly_once(
    bootstrap: str,
    sink_id: str,
    *,
    topic: str | None = None,
    topics: Sequence[str] = (),
    compression: str = "none",
    batch_bytes: int = BATCH_BYTES,
    writers: int | None = None,
    order_by: str | Sequence[str] = (),
    attempts: int = ATTEMPTS,
    transaction_timeout_ms: int | None = None,
    resume_at: int | None = None,
    settings: Mapping[str, str] | None = None,
    trace: Trace | None = None,
) -> ExactlyOnce:
    """A function for `foreachBatch`.

    `topic` takes all rows; with `topics` each row names one of them in its column `topic`. The
    other columns are those of Spark's own Kafka sink: `value`, and if you like `key`, `headers` and
    `partition`. `writers` is how many tasks write (one writes each partition), `order_by` sorts
    within an output partition, `attempts` is how often a batch is ticket before the query fails.
    `resume_at` is for a sink whose marker was lost: see docs/spark-sink.md. `settings` are Kafka's,
    for every client.
    """
    options = SinkOptions(
        bootstrap=bootstrap,
        sink_id=sink_id,
        topic=topic,
        topics=topics,
        compression=compression,
        batch_bytes=batch_bytes,
        writers=writers,
        order_by=order_by,
        attempts=attempts,
        transaction_timeout_ms=transaction_timeout_ms,
        resume_at=resume_at,
        settings=dict(settings or {}),
    )
    return ExactlyOnce(options, trace=trace)


class ExactlyOnce:
    """Takes the sink over with its first batch; a batch is published once, or the query ends."""

    def __init__(self, options: SinkOptions, *, trace: Trace | None = None) -> None:
        self.options = options
        self._trace = trace
        self._driver: SinkDriver | None = None
        self._query_id: str | None = None
        self._lock = threading.Lock()
        self._is_over = threading.Event()

    def __call__(self, frame: DataFrame, batch_id: int) -> None:
        """Publish a batch, or find that it is published."""
        _refuse_speculation(frame)
        batch = running_batch(frame, batch_id)
        rows = shaped(frame, topic=self.options.topic, order_by=self.options.order_columns)
        driver = self._taken_over(batch.query_id)
        for attempt in range(1, self.options.attempts + 1):
            try:
                self._publish(driver, batch, rows)
                return
            except SinkError as error:
                if error.is_final or attempt == self.options.attempts:
                    raise

    @property
    def transaction_age_ms(self) -> int | None:
        """How long the batch that is being written has been open."""
        return None if self._driver is None else self._driver.transaction_age_ms

    @property
    def transaction_timeout_ms(self) -> int | None:
        """How long a batch may take."""
        return None if self._driver is None else self._driver.transaction_timeout_ms

    def close(self) -> None:
        """Drop the connections to the cluster; the query must have ended."""
        self._is_over.set()
        with self._lock:
            if self._driver is not None:
                self._driver.close()
                self._driver = None

    # One batch

    def _publish(self, driver: SinkDriver, batch: RunningBatch, rows: DataFrame) -> None:
        ticket = driver.begin(batch.batch_id, batch.source_hash)
        if isinstance(ticket, AlreadyPublished):
            # The rows are in the topics. The state of Spark's operators may not be: run them.
            rows.write.format("noop").mode("overwrite").save()
            return
        try:
            receipts = self._write(ticket, rows)
        except SinkError as error:
            driver.give_up(error)
            raise
        except BaseException as error:
            _abort_quietly(driver, f"Spark failed: {error}")
            raise
        sync_offsets(batch.checkpoint, batch.batch_id)
        driver.commit(receipts)

    def _write(self, ticket: BatchTicket, rows: DataFrame) -> list[Receipt]:
        outputs = OutputPartitions.of(ticket.end_offsets)
        parallelism = rows.sparkSession.sparkContext.defaultParallelism
        writers = min(len(outputs), self.options.writers or parallelism)
        spread = repartitioned(rows, outputs, writers=writers)
        reports: Any = spread.mapInArrow(TaskWriter(self.options, ticket), SPARK_SCHEMA)
        return receipts_of(_dictionaries(reports.collect()))

    # The sink's life

    def _taken_over(self, query_id: str) -> SinkDriver:
        with self._lock:
            if self._driver is not None and self._query_id == query_id:
                return self._driver
            if self._driver is not None:
                self._driver.close()
            driver = SinkDriver(self.options, query_id=query_id, trace=self._trace)
            self._driver = driver
            self._query_id = query_id
        try:
            driver.take_over()
        except BaseException:
            self._driver = None
            driver.close()
            raise
        watcher = threading.Thread(
            target=self._renew, args=(driver,), name="tidelog-sink-renewal", daemon=True
        )
        watcher.start()
        return driver

    def _renew(self, driver: SinkDriver) -> None:
        """An idle query makes no calls, so the marker is renewed from here."""
        while not self._is_over.wait(RENEWAL_CHECK_S) and driver is self._driver:
            try:
                driver.renew_if_due()
            except BatchLost:
                continue  # the cluster did not answer; there is time for more tries
            except SinkError:
                return  # the next batch will fail with it as well


def _refuse_speculation(frame: DataFrame) -> None:
    """Two attempts of one task at a time would spoil every batch."""
    if str(frame.sparkSession.conf.get("spark.speculation", "false")).lower() == "true":
        raise SinkRefused("spark.speculation must be off: a partition has one writer at a time")


def _abort_quietly(driver: SinkDriver, because: str) -> None:
    """Something else went wrong, and that is what the query should fail with."""
    try:
        driver.abort(because)
    except SinkError:
        return


def _dictionaries(rows: Iterable[Any]) -> Iterable[dict[str, Any]]:
    return (row.asDict() for row in rows)
