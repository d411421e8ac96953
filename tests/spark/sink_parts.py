"""Sinks without Spark, on a real cluster: batches, tasks, and what readers get of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from tests.process.waiting import PATIENCE_S
from tests.process.wire import NO_GROUP
from tests.spark.transactions import wait_until_ended
from tidelog.client.shells.sink_driver import SinkDriver
from tidelog.client.shells.sink_task import SinkTask
from tidelog.client.sink.options import GROUP_PREFIX, SinkOptions
from tidelog.client.sink.values import AlreadyPublished, BatchTicket, Receipt
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.core.wire.records import NewRecord, build

QUERY = "query-1"
Rows = Mapping[int, Sequence[str]]
"""Values by partition."""


class Batch(NamedTuple):
    """An encoded batch."""

    data: bytes
    records: int
    base_sequence: int


def encoded(
    identity: ProducerIdAndEpoch, values: Iterable[str], *, base_sequence: int = 0
) -> Batch:
    records = [NewRecord(value.encode(), timestamp_ms=0) for value in values]
    data = build(
        records,
        producer_id=identity.producer_id,
        producer_epoch=identity.producer_epoch,
        base_sequence=base_sequence,
        transactional=True,
    )
    return Batch(bytes(data), len(records), base_sequence)


class Sink:
    """A sink on a topic: its drivers, its tasks, its readers."""

    def __init__(self, bootstrap: str, topic: str, *, sink_id: str | None = None) -> None:
        self.settings = {"bootstrap.servers": bootstrap}
        self.bootstrap = bootstrap
        self.topic = topic
        self.sink_id = sink_id or topic

    def driver(
        self,
        *,
        run_id: str | None = None,
        query_id: str = QUERY,
        transaction_timeout_ms: int | None = None,
        resume_at: int | None = None,
    ) -> SinkDriver:
        options = SinkOptions(
            bootstrap=self.bootstrap,
            sink_id=self.sink_id,
            topics=[self.topic],
            transaction_timeout_ms=transaction_timeout_ms,
            resume_at=resume_at,
        )
        return SinkDriver(options, query_id=query_id, run_id=run_id, timeout_s=PATIENCE_S)

    def write(self, ticket: BatchTicket, rows: Rows, *, salt: int = 1) -> list[Receipt]:
        with SinkTask(self.settings, ticket, salt=salt) as task:
            for partition, values in rows.items():
                self.append(task, ticket, partition, list(values))
            return task.finish()

    def append(
        self, task: SinkTask, ticket: BatchTicket, partition: int, values: list[str]
    ) -> None:
        """The first batch has as many records as the salt says, then tens."""
        while values:
            first = task.first_batch_records_max(self.topic, partition, available=len(values))
            now, values = values[: first or 10], values[first or 10 :]
            base_sequence = task.next_sequence(self.topic, partition)
            batch = encoded(ticket.identity, now, base_sequence=base_sequence)
            task.write(self.topic, partition, [batch])

    def publish(self, driver: SinkDriver, batch_id: int, rows: Rows) -> bool:
        """The whole of a batch; False: it was published before."""
        ticket = driver.begin(batch_id, source_hash(batch_id))
        if isinstance(ticket, AlreadyPublished):
            return False
        driver.commit(self.write(ticket, rows))
        return True

    def ticket(self, driver: SinkDriver, batch_id: int) -> BatchTicket:
        ticket = driver.begin(batch_id, source_hash(batch_id))
        assert isinstance(ticket, BatchTicket)
        return ticket

    def committed(self) -> list[str]:
        """What a reader of committed data gets, sorted; a last takeover settles what is open."""
        with self.driver(run_id="reader") as driver:
            driver.take_over()
        return sorted(read_committed(self.bootstrap, self.topic))


def source_hash(batch_id: int) -> str:
    return f"source-{batch_id}"


def rows_of(batch_id: int, *, partitions: int = 2, records: int = 12) -> Rows:
    return {
        partition: [f"batch {batch_id} partition {partition} {n}" for n in range(records)]
        for partition in range(partitions)
    }


def values_of(*batch_ids: int) -> list[str]:
    return sorted(
        value for each in batch_ids for values in rows_of(each).values() for value in values
    )


def wait_until_decided(bootstrap: str, sink_id: str) -> None:
    """Until readers find all that the sink has published."""
    wait_until_ended(bootstrap, GROUP_PREFIX + sink_id)


def read_committed(bootstrap: str, topic: str) -> list[str]:
    """All of it, by librdkafka."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            **NO_GROUP,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        found = consumer.list_topics(topic, timeout=PATIENCE_S).topics[topic]
        consumer.assign(
            [TopicPartition(topic, each, OFFSET_BEGINNING) for each in found.partitions]
        )
        values: list[str] = []
        ended: set[int] = set()
        while len(ended) < len(found.partitions):
            message = consumer.poll(PATIENCE_S)
            assert message is not None, f"{topic} has no end"
            error, value = message.error(), message.value()
            if error is None:
                assert value is not None
                values.append(value.decode())
            else:
                assert error.code() == KafkaError._PARTITION_EOF, error
                partition = message.partition()
                assert partition is not None
                ended.add(partition)
        return values
    finally:
        consumer.close()
