"""What the sink refuses in a running query: second writers, wrong checkpoints, lost markers."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka.admin import AdminClient

from tests.process.waiting import PATIENCE_S
from tests.spark.brokers import Brokers
from tests.spark.sink_parts import wait_until_decided
from tests.spark.sink_streams import Stream, sink, values
from tests.spark.topics import NewTopic
from tidelog.client.events import BatchAborted, BatchCommitted
from tidelog.client.sink.options import GROUP_PREFIX
from tidelog.client.sink.values import BatchTicket

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long


@pytest.fixture
def stream(spark: SparkSession, tmp_path: Path) -> Stream:
    return Stream(spark, tmp_path)


@pytest.fixture
def topic(brokers: Brokers, new_topic: NewTopic) -> str:
    return new_topic(brokers, partitions=2, min_insync_replicas="2")


class WritesTwice:
    """A task whose rows are written by two attempts; only the second one is heard of."""

    def __init__(self, plan: Any, ticket: BatchTicket) -> None:
        self._plan = plan
        self._begun = ticket

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from tidelog.spark.sink.task_writer import TaskWriter, write_rows

        rows = list(batches)
        write_rows(self._plan, self._begun, iter(rows), salt=10**6)
        yield from TaskWriter(self._plan, self._begun)(iter(rows))


def test_a_second_writer_in_a_task_is_found_and_the_batch_begun_again(
    brokers: Brokers, stream: Stream, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made, trace = sink(brokers, topic, attempts=2)
    stream.add(*[f"line {n:02}" for n in range(40)])
    with monkeypatch.context() as patched:
        patched.setattr("tidelog.spark.sink.exactly_once.TaskWriter", WritesTwice)
        with pytest.raises(Exception, match="GuardFailed"):
            stream.run(made)
    made.close()
    assert len(trace.of(BatchAborted)) == 2 and not trace.of(BatchCommitted)
    assert values(brokers, topic) == []

    again, _ = sink(brokers, topic)
    stream.run(again)
    again.close()

    assert values(brokers, topic) == [f"line {n:02}" for n in range(40)]


def test_a_checkpoint_that_was_rolled_back_is_refused(
    brokers: Brokers, stream: Stream, topic: str
) -> None:
    made, _ = sink(brokers, topic)
    stream.add("a")
    stream.run(made)
    shutil.copytree(stream.directory / "checkpoint", stream.directory / "older")
    stream.add("b")
    stream.add("c")
    stream.run(made)
    made.close()
    again, _ = sink(brokers, topic)

    with pytest.raises(Exception, match=r"CheckpointRolledBack.*published twice"):
        stream.run(again, checkpoint="older")

    again.close()
    assert values(brokers, topic) == ["a", "b", "c"]


def test_a_marker_that_expired_is_asked_for(brokers: Brokers, stream: Stream, topic: str) -> None:
    made, _ = sink(brokers, topic)
    stream.add("a")
    stream.run(made)
    made.close()
    forget(brokers, topic)
    stream.add("b")
    again, _ = sink(brokers, topic)

    with pytest.raises(Exception, match=r"MarkerMissing.*resume_at=1"):
        stream.run(again)

    again.close()
    told, _ = sink(brokers, topic, resume_at=1)
    stream.run(told)
    told.close()
    assert values(brokers, topic) == ["a", "b"]


def forget(brokers: Brokers, topic: str) -> None:
    """What `offsets.retention.minutes` does in the end."""
    admin = AdminClient({"bootstrap.servers": brokers.bootstrap_servers})
    wait_until_decided(brokers.bootstrap_servers, topic)
    (deleted,) = admin.delete_consumer_groups([GROUP_PREFIX + topic]).values()
    deleted.result(PATIENCE_S)


def test_a_batch_that_outlives_its_transaction_ends_the_query_with_that_reason(
    brokers: Brokers, stream: Stream, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything is written, in good time; the commit waits until the cluster has aborted."""
    made, _ = sink(brokers, topic, transaction_timeout_ms=10_000)
    stream.add("a", "b")

    def late(*_: object) -> None:
        wait_until_decided(brokers.bootstrap_servers, topic)

    with monkeypatch.context() as patched:
        patched.setattr("tidelog.spark.sink.exactly_once.sync_offsets", late)
        with pytest.raises(Exception, match=r"TransactionTimedOut.*timeout\.ms is 10000"):
            stream.run(made)

    made.close()
    again, _ = sink(brokers, topic)
    stream.run(again)
    again.close()
    assert values(brokers, topic) == ["a", "b"]
