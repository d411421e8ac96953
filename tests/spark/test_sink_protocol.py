"""The sink's machines on three brokers: publish, skip, refuse, and second writers."""

from __future__ import annotations

import pytest

import tidelog
from tests.process.waiting import wait_until
from tests.spark.brokers import ON_BOTH, Brokers
from tests.spark.sink_parts import QUERY, Sink, encoded, rows_of, values_of
from tests.spark.topics import NewTopic
from tidelog.client.shells.sink_driver import SinkDriver
from tidelog.client.shells.sink_task import SinkTask
from tidelog.client.sink.errors import (
    CheckpointForeign,
    CheckpointRolledBack,
    ClusterUnfit,
    Fenced,
    ForeignRun,
    GuardFailed,
    MarkerMissing,
    SinkError,
    SinkRefused,
    TransactionTimedOut,
)
from tidelog.client.sink.guards import first_batch_records_max
from tidelog.client.sink.options import SinkOptions
from tidelog.client.sink.values import AlreadyPublished, BatchTicket


@pytest.fixture
def sink(brokers: Brokers, new_topic: NewTopic) -> Sink:
    topic = new_topic(brokers, partitions=2, min_insync_replicas="2")
    return Sink(brokers.bootstrap_servers, topic)


@ON_BOTH
def test_batches_are_published_and_a_replay_is_skipped(sink: Sink) -> None:
    with sink.driver() as first:
        first.take_over()
        assert sink.publish(first, 0, rows_of(0))
        assert sink.publish(first, 1, {})
        assert sink.publish(first, 2, rows_of(2))

    with sink.driver() as second:
        second.take_over()
        assert second.begin(2, "source-2") == AlreadyPublished(batch_id=2)
        assert sink.publish(second, 3, rows_of(3))

    assert sink.committed() == values_of(0, 2, 3)


def test_an_aborted_batch_is_never_seen_and_begun_again(sink: Sink) -> None:
    with sink.driver() as driver:
        driver.take_over()
        sink.write(sink.ticket(driver, 0), {0: ["lost"]})
        driver.abort("a task failed")
        assert sink.publish(driver, 0, rows_of(0))

    assert sink.committed() == values_of(0)


@ON_BOTH
def test_a_driver_that_was_overtaken_stops_and_its_successor_does_not_notice(sink: Sink) -> None:
    with sink.driver(run_id="A") as first, sink.driver(run_id="B") as second:
        first.take_over()
        receipts = sink.write(sink.ticket(first, 0), {0: ["zombie"]})
        second.take_over()
        ticket = sink.ticket(second, 0)

        with pytest.raises(Fenced):
            first.commit(receipts)
        with pytest.raises(Fenced):
            first.begin(0, "source-0")
        second.commit(sink.write(ticket, rows_of(0)))
        assert sink.publish(second, 1, rows_of(1))

    assert sink.committed() == values_of(0, 1)


def test_an_idle_driver_that_was_overtaken_finds_a_foreign_marker(sink: Sink) -> None:
    with sink.driver(run_id="A") as first, sink.driver(run_id="B") as second:
        first.take_over()
        second.take_over()

        with pytest.raises(ForeignRun, match=r"another run \(B\)"):
            first.begin(0, "source-0")
        assert sink.publish(second, 0, rows_of(0))

    assert sink.committed() == values_of(0)


def test_late_tasks_of_an_older_batch_are_fenced(sink: Sink) -> None:
    with sink.driver() as driver:
        driver.take_over()
        old = sink.ticket(driver, 0)
        driver.commit(sink.write(old, rows_of(0)))
        ticket = sink.ticket(driver, 1)

        for partition in (0, 1):
            with pytest.raises(SinkError):
                sink.write(old, {partition: ["late"]})
        driver.commit(sink.write(ticket, rows_of(1)))

        with pytest.raises(SinkError):
            sink.write(old, {0: ["later"]})

    assert sink.committed() == values_of(0, 1)


def test_a_late_task_that_joins_after_the_commit_does_not_end_the_run(sink: Sink) -> None:
    """It opens a transaction that nobody ends; the next batch does."""
    with sink.driver() as driver:
        driver.take_over()
        old = sink.ticket(driver, 0)
        driver.commit(sink.write(old, {0: rows_of(0)[0]}))
        sink.write(old, {1: ["late"]})

        assert sink.publish(driver, 1, {1: rows_of(0)[1]})

    assert sink.committed() == values_of(0)


# Each guard alone


@ON_BOTH
def test_the_salted_first_batch_finds_a_second_writer(sink: Sink) -> None:
    with sink.driver() as driver:
        driver.take_over()
        ticket = sink.ticket(driver, 0)
        sink.write(ticket, {0: rows_of(0)[0]}, salt=1)

        with pytest.raises(GuardFailed, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
            sink.write(ticket, {0: rows_of(0)[0]}, salt=2)


@ON_BOTH
def test_the_offset_finds_a_second_writer_with_the_same_salt(sink: Sink) -> None:
    with sink.driver() as driver:
        driver.take_over()
        ticket = sink.ticket(driver, 0)
        (receipt,) = sink.write(ticket, {0: ["a", "b", "c"]})

        with pytest.raises(GuardFailed, match="acknowledged at offset"):
            sink.write(ticket, {0: ["x", "y", "z"]})

        assert receipt.records == 3


def test_the_state_of_the_producer_finds_a_writer_that_went_on(sink: Sink) -> None:
    with sink.driver() as driver:
        driver.take_over()
        ticket = sink.ticket(driver, 0)
        with SinkTask(sink.settings, ticket, salt=1) as task:
            task.write(sink.topic, 0, [encoded(ticket.identity, ["a", "b"])])
            receipts = task.finish()
            task.write(sink.topic, 0, [encoded(ticket.identity, ["more"], base_sequence=2)])
            task.finish()

        with pytest.raises(GuardFailed, match="at sequence 2, and the receipt ends at 1"):
            driver.commit(receipts)
        assert sink.publish(driver, 0, rows_of(0))

    assert sink.committed() == values_of(0)


def test_the_transaction_itself_finds_a_writer_that_reported_nothing(sink: Sink) -> None:
    with sink.driver() as driver:
        driver.take_over()
        ticket = sink.ticket(driver, 0)
        sink.write(ticket, {1: ["by a dead attempt"]})
        receipts = sink.write(ticket, {0: ["a"]})

        with pytest.raises(GuardFailed, match="-1 was added to the transaction"):
            driver.commit(receipts)
        assert sink.publish(driver, 0, rows_of(0))

    assert sink.committed() == values_of(0)


def test_two_receipts_for_one_partition_refuse_the_batch(sink: Sink) -> None:
    with sink.driver() as driver:
        driver.take_over()
        receipts = sink.write(sink.ticket(driver, 0), {0: ["a"]})

        with pytest.raises(GuardFailed, match="two receipts"):
            driver.commit([*receipts, *receipts])

    assert sink.committed() == []


def test_salts_of_attempts_differ() -> None:
    assert first_batch_records_max(1, available=12) != first_batch_records_max(2, available=12)


# Checkpoints, markers, clusters


def test_a_checkpoint_that_does_not_belong_to_the_sink_is_refused(sink: Sink) -> None:
    with sink.driver() as owner:
        owner.take_over()
        for batch_id in range(3):
            sink.publish(owner, batch_id, {0: [str(batch_id)]})

        with sink.driver(query_id="another") as foreign, pytest.raises(CheckpointForeign):
            foreign.take_over()
        assert sink.publish(owner, 3, {0: ["3"]})
    with sink.driver() as rolled_back:
        rolled_back.take_over()
        with pytest.raises(CheckpointRolledBack, match="published twice"):
            rolled_back.begin(1, "source-1")
    with sink.driver() as edited:
        edited.take_over()
        with pytest.raises(CheckpointRolledBack, match="other source offsets"):
            edited.begin(3, "from elsewhere")

    assert sink.committed() == ["0", "1", "2", "3"]


def test_a_later_batch_without_a_marker_is_refused_until_an_operator_decides(sink: Sink) -> None:
    with sink.driver() as driver:
        driver.take_over()
        with pytest.raises(MarkerMissing, match="resume_at=5"):
            driver.begin(5, "source-5")

    with sink.driver(resume_at=5) as driver:
        driver.take_over()
        assert driver.begin(4, "source-4") == AlreadyPublished(batch_id=4)
        assert sink.publish(driver, 5, rows_of(5))

    assert sink.committed() == values_of(5)


@pytest.mark.long
def test_a_batch_that_outlives_its_transaction_is_refused_loudly(sink: Sink) -> None:
    with sink.driver(transaction_timeout_ms=5_000) as driver:
        driver.take_over()
        ticket = sink.ticket(driver, 0)
        receipts = sink.write(ticket, rows_of(0))
        wait_until(lambda: refuses(sink, ticket), "the cluster to abort the transaction")

        with pytest.raises(TransactionTimedOut, match=r"transaction\.timeout\.ms is 5000"):
            driver.commit(receipts)

    with sink.driver() as driver:
        driver.take_over()
        assert sink.publish(driver, 0, rows_of(0))
    assert sink.committed() == values_of(0)


def refuses(sink: Sink, ticket: BatchTicket) -> bool:
    """Whether a task of this batch cannot join any more."""
    with SinkTask(sink.settings, ticket, salt=9) as task:
        try:
            task.write(sink.topic, 0, [encoded(ticket.identity, ["probe"] * 99)])
            task.finish()
        except Fenced:
            return True
        except SinkError:
            return False
    return False


def test_a_timeout_above_the_brokers_maximum_is_refused(sink: Sink) -> None:
    with (
        sink.driver(transaction_timeout_ms=10**9) as driver,
        pytest.raises(SinkRefused, match=r"transaction\.max\.timeout\.ms=900000"),
    ):
        driver.take_over()


@pytest.mark.long
def test_a_topic_that_does_not_exist_is_named(brokers: Brokers) -> None:
    sink = Sink(brokers.bootstrap_servers, "there-is-no-such-topic")

    with sink.driver() as driver, pytest.raises(SinkRefused, match="does not exist"):
        driver.take_over()


def test_a_cluster_that_verifies_nothing_is_refused_in_one_line(
    unfit: tidelog.Cluster, new_topic: NewTopic
) -> None:
    topic = new_topic(unfit, replicas=1)
    options = SinkOptions(bootstrap=unfit.bootstrap_servers, sink_id="s", topic=topic)

    with (
        SinkDriver(options, query_id=QUERY) as driver,
        pytest.raises(ClusterUnfit, match=r"verification\.enable is not true") as told,
    ):
        driver.take_over()

    assert "\n" not in str(told.value)
