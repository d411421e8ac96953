"""The driver's protocol against a fake cluster: publish, skip, refuse, survive lost answers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fake_cluster import Close, once
from tests.unit.client.sink.stage import P0, P1, TOPIC, Run, Stage, encoded
from tidelog.client.sink import driver as protocol
from tidelog.client.sink.errors import (
    CheckpointForeign,
    CheckpointRolledBack,
    ClusterUnfit,
    CommitUnknown,
    Fenced,
    ForeignRun,
    GuardFailed,
    MarkerMissing,
    SinkError,
    SinkRefused,
    TransactionTimedOut,
)
from tidelog.client.sink.events import BatchCommitted, MarkerDoubted, MarkerRenewed
from tidelog.client.sink.values import AlreadyPublished, Begun
from tidelog.core.wire.messages.api_09_offset_fetch import OffsetFetchRequest
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdRequest
from tidelog.core.wire.messages.api_26_end_txn import EndTxnRequest

ROWS = {0: ["a", "b", "c"], 1: ["d"]}


def begun_by(run: Run, batch_id: int) -> Begun:
    begun = run.begin(batch_id)
    assert isinstance(begun, Begun)
    return begun


def test_batches_are_published_one_after_the_other() -> None:
    stage = Stage()
    run = stage.run().take_over()

    assert run.publish(0, ROWS)
    assert stage.committed() == ["a", "b", "c", "d"]
    assert run.publish(1, {1: ["e"]})

    assert stage.committed() == ["a", "b", "c", "d", "e"]
    assert [each.records for each in run.host.trace.of(BatchCommitted)] == [4, 1]


def test_nothing_is_seen_before_the_commit() -> None:
    stage = Stage()
    run = stage.run().take_over()

    begun = begun_by(run, 0)
    receipts = run.write(begun, ROWS)

    assert stage.committed() == []
    run.commit(receipts)
    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_batch_without_records_moves_the_marker_too() -> None:
    stage = Stage()
    run = stage.run().take_over()

    assert run.publish(0, {})
    assert run.publish(1, ROWS)

    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_published_batch_is_skipped_by_the_next_run() -> None:
    stage = Stage()
    stage.run(name="A").take_over().publish(0, ROWS)

    run = stage.run(name="B").take_over()

    assert run.begin(0) == AlreadyPublished(batch_id=0)
    assert stage.committed() == ["a", "b", "c", "d"]
    assert run.publish(1, {0: ["e"]})


def test_every_transaction_has_a_producer_epoch_of_its_own() -> None:
    stage = Stage()
    run = stage.run().take_over()
    epochs = [begun_by(run, 0).identity.producer_epoch]
    run.commit([])
    epochs.append(begun_by(run, 1).identity.producer_epoch)
    run.lead(run.driver.abort("a task failed"))
    epochs.append(begun_by(run, 1).identity.producer_epoch)

    assert epochs == sorted(set(epochs))


def test_an_aborted_batch_may_be_begun_again() -> None:
    stage = Stage()
    run = stage.run().take_over()
    begun = begun_by(run, 0)
    run.write(begun, {0: ["lost"]})

    run.lead(run.driver.abort("a task failed"))

    assert run.publish(0, ROWS)
    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_begin_aborts_what_is_still_open() -> None:
    stage = Stage()
    run = stage.run().take_over()
    run.write(begun_by(run, 0), {0: ["lost"]})

    assert run.publish(0, ROWS)

    assert stage.committed() == ["a", "b", "c", "d"]


def test_waiting_for_the_end_of_the_former_transaction_is_patient() -> None:
    """Codes 51 and 88: the markers of the batch before are still being written."""
    stage = Stage()
    stage.coordinator.delay = 7
    run = stage.run().take_over()

    for batch_id in range(3):
        assert run.publish(batch_id, {0: [f"b{batch_id}"]})

    assert stage.asked(OffsetFetchRequest) > 20
    stage.run(name="B").take_over()
    assert stage.committed() == ["b0", "b1", "b2"]


# Two drivers


def test_a_driver_whose_sink_was_taken_over_stops_and_touches_nothing() -> None:
    stage = Stage()
    first = stage.run(name="A").take_over()
    first.publish(0, ROWS)
    second = stage.run(name="B").take_over()
    before = stage.asked(InitProducerIdRequest)

    with pytest.raises(ForeignRun, match=r"another run .B"):
        first.begin(1)

    assert stage.asked(InitProducerIdRequest) == before
    assert second.publish(1, {0: ["e"]})


def test_a_final_error_stays_final() -> None:
    stage = Stage()
    first = stage.run(name="A").take_over()
    stage.run(name="B").take_over()

    for _ in range(2):
        with pytest.raises(ForeignRun):
            first.begin(0)


def test_a_driver_that_is_overtaken_in_its_batch_cannot_commit_it() -> None:
    stage = Stage()
    first = stage.run(name="A").take_over()
    receipts = first.write(begun_by(first, 0), {0: ["zombie"]})
    second = stage.run(name="B").take_over()
    begun = begun_by(second, 0)

    with pytest.raises(Fenced):
        first.commit(receipts)

    second.commit(second.write(begun, ROWS))
    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_late_task_of_an_overtaken_driver_is_refused() -> None:
    stage = Stage()
    first = stage.run(name="A").take_over()
    begun = begun_by(first, 0)
    first.write(begun, {0: ["zombie"]})
    second = stage.run(name="B").take_over()
    second.commit(second.write(begun_by(second, 0), ROWS))

    with pytest.raises(SinkError):
        stage.write(begun, {0: ["late"]})
    with pytest.raises(SinkError):
        stage.write(begun, {1: ["late"]})

    assert stage.committed() == ["a", "b", "c", "d"]


def test_an_old_answer_about_the_marker_is_no_ground_to_act_on() -> None:
    """A is stopped before it reads the answer; what it would ask for next would abort B's batch."""
    stage = Stage()
    first = stage.run(name="A").take_over()
    ends = first.start(first.driver.begin(0, "source-0"))
    clock = stage.cluster.clock
    clock.run_until(lambda: isinstance(stage.cluster.seen[-1].request, OffsetFetchRequest))
    first.host.freeze()
    second = stage.run(name="B").take_over()
    begun = begun_by(second, 0)
    receipts = second.write(begun, ROWS)
    clock.run_for(1_000)

    first.host.thaw()
    clock.run_until(lambda: ends)

    assert isinstance(ends[0], ForeignRun)
    assert first.host.trace.of(MarkerDoubted)
    second.commit(receipts)
    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_late_task_of_our_own_does_not_end_the_run() -> None:
    """It adds a partition after the commit, so that the next epoch is refused at first."""
    stage = Stage()
    run = stage.run().take_over()
    begun = begun_by(run, 0)
    run.commit(run.write(begun, ROWS))
    host, task = stage.task(begun)
    host.do(lambda now_ms: task.append(P1, encoded(begun.identity, ["late"]), now_ms=now_ms))
    stage.cluster.clock.run_until(lambda: task.is_settled)

    assert run.publish(1, {0: ["e"]})

    assert stage.committed() == ["a", "b", "c", "d", "e"]


# The commit


def lose_commit(stage: Stage, *, is_carried_out: bool) -> None:
    """The next commit is not answered."""

    def rule(broker_id: int, request: Any) -> Any:
        if not isinstance(request, EndTxnRequest) or not request.committed:
            return None
        if is_carried_out:
            stage.coordinator.answer(broker_id, request)
        return Close()

    stage.cluster.rules.insert(0, once(rule))


def reach_commit(stage: Stage) -> None:
    stage.cluster.clock.run_until(lambda: isinstance(stage.cluster.seen[-1].request, EndTxnRequest))


@pytest.mark.parametrize("is_carried_out", [True, False])
def test_a_commit_without_an_answer_is_asked_for_again(is_carried_out: bool) -> None:
    stage = Stage()
    run = stage.run().take_over()
    receipts = run.write(begun_by(run, 0), ROWS)
    lose_commit(stage, is_carried_out=is_carried_out)

    run.commit(receipts)

    assert stage.committed() == ["a", "b", "c", "d"]
    assert run.publish(1, {0: ["e"]})


def test_a_commit_that_was_carried_out_before_a_takeover_is_found_in_the_marker() -> None:
    """The answer is lost, B takes over, and A's second question is refused: still published."""
    stage = Stage()
    first = stage.run(name="A").take_over()
    receipts = first.write(begun_by(first, 0), ROWS)
    lose_commit(stage, is_carried_out=True)
    ends = first.start(first.driver.commit(receipts, now_ms=first.host.now_ms))
    reach_commit(stage)
    first.host.freeze()
    second = stage.run(name="B").take_over()

    first.host.thaw()
    stage.cluster.clock.run_until(lambda: ends)

    assert ends == [None]
    assert first.host.trace.of(BatchCommitted)[0].by_marker  # type: ignore[attr-defined]
    assert second.begin(0) == AlreadyPublished(batch_id=0)
    with pytest.raises(ForeignRun):
        first.begin(1)


def test_a_commit_that_never_arrived_before_a_takeover_is_known_not_to_be() -> None:
    stage = Stage()
    first = stage.run(name="A").take_over()
    receipts = first.write(begun_by(first, 0), {0: ["zombie"]})
    lose_commit(stage, is_carried_out=False)
    ends = first.start(first.driver.commit(receipts, now_ms=first.host.now_ms))
    reach_commit(stage)
    first.host.freeze()
    second = stage.run(name="B").take_over()

    first.host.thaw()
    stage.cluster.clock.run_until(lambda: ends)

    assert isinstance(ends[0], Fenced)
    assert second.publish(0, ROWS)
    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_commit_that_nobody_can_tell_about_is_unknown_and_never_failed() -> None:
    stage = Stage()
    run = stage.run(name="A").take_over()
    receipts = run.write(begun_by(run, 0), ROWS)
    lose_commit(stage, is_carried_out=True)
    ends = run.start(run.driver.commit(receipts, now_ms=run.host.now_ms))
    reach_commit(stage)
    for broker_id in (1, 2, 3):
        stage.cluster.kill(broker_id)

    stage.cluster.clock.run_until(lambda: ends)

    assert isinstance(ends[0], CommitUnknown)
    with pytest.raises(CommitUnknown):
        run.begin(0)
    for broker_id in (1, 2, 3):
        stage.cluster.start(broker_id)
    assert stage.run(name="B").take_over().begin(0) == AlreadyPublished(batch_id=0)


# Guards, at the commit


def test_a_partition_that_nobody_reported_refuses_the_batch() -> None:
    stage = Stage()
    run = stage.run().take_over()
    begun = begun_by(run, 0)
    stage.write(begun, {1: ["by a dead attempt"]})
    receipts = run.write(begun, {0: ["a"]})

    with pytest.raises(GuardFailed, match="out-1 was added"):
        run.commit(receipts)

    assert run.publish(0, ROWS)
    assert stage.committed() == ["a", "b", "c", "d"]


def test_a_writer_that_went_on_after_the_receipt_refuses_the_batch() -> None:
    stage = Stage()
    run = stage.run().take_over()
    begun = begun_by(run, 0)
    receipts = run.write(begun, {0: ["a", "b"]})
    error, _ = stage.cluster["out-0"].append(
        encoded(begun.identity, ["by another"], base_sequence=2).data
    )
    assert error == 0

    with pytest.raises(GuardFailed, match="at sequence 2"):
        run.commit(receipts)

    assert run.publish(0, ROWS)
    assert stage.committed() == ["a", "b", "c", "d"]


def test_two_receipts_for_one_partition_refuse_the_batch() -> None:
    stage = Stage()
    run = stage.run().take_over()
    begun = begun_by(run, 0)
    receipts = run.write(begun, {0: ["a"]})

    with pytest.raises(GuardFailed, match="two receipts"):
        run.commit([*receipts, *receipts])

    assert stage.committed() == []


# Checkpoints and markers


def test_the_first_batch_of_all_is_batch_zero() -> None:
    stage = Stage()

    with pytest.raises(MarkerMissing, match="resume_at=3"):
        stage.run().take_over().begin(3)

    assert stage.run(name="again").take_over().publish(0, ROWS)


def test_an_operator_may_say_where_a_sink_without_marker_goes_on() -> None:
    stage = Stage()
    run = stage.run(resume_at=3).take_over()

    assert run.begin(2) == AlreadyPublished(batch_id=2)
    assert run.publish(3, ROWS)
    assert run.publish(4, {0: ["e"]})


def test_a_marker_that_expires_under_a_running_query_is_missed_loudly() -> None:
    stage = Stage()
    run = stage.run().take_over()
    run.publish(0, ROWS)
    stage.coordinator.marker = None

    with pytest.raises(MarkerMissing, match="vanished"):
        run.begin(1)


def test_a_query_with_another_checkpoint_is_refused_before_it_touches_anything() -> None:
    stage = Stage()
    owner = stage.run(name="A").take_over()
    owner.publish(0, ROWS)
    before = stage.asked(InitProducerIdRequest)

    with pytest.raises(CheckpointForeign, match="query-1, and this one is query-2"):
        stage.run(name="B", query_id="query-2").take_over()

    assert stage.asked(InitProducerIdRequest) == before
    assert owner.publish(1, {0: ["e"]})


def test_a_rolled_back_checkpoint_is_refused() -> None:
    stage = Stage()
    run = stage.run(name="A").take_over()
    for batch_id in range(3):
        run.publish(batch_id, {0: [str(batch_id)]})

    with pytest.raises(CheckpointRolledBack, match="published twice"):
        stage.run(name="B").take_over().begin(1)

    with pytest.raises(CheckpointRolledBack, match="other source offsets"):
        stage.run(name="C").take_over().begin(2, source="other")


def test_the_marker_is_renewed_every_seventh_of_its_life() -> None:
    stage = Stage()
    run = stage.run().take_over()
    run.publish(0, ROWS)
    due_ms = run.driver.renewal_due_ms()
    assert due_ms is not None
    week_ms = 7 * 24 * 3_600_000
    assert abs(due_ms - run.host.now_ms - week_ms // 7) < 1_000
    marker = stage.coordinator.marker

    run.lead(run.driver.renew())

    assert stage.coordinator.marker == marker
    assert run.host.trace.of(MarkerRenewed) == [MarkerRenewed(batch_id=0)]
    assert (run.driver.renewal_due_ms() or 0) > due_ms
    assert run.publish(1, {0: ["e"]})


def test_a_renewal_by_a_driver_that_was_overtaken_stops_it() -> None:
    stage = Stage()
    first = stage.run(name="A").take_over()
    second = stage.run(name="B").take_over()

    with pytest.raises(ForeignRun):
        first.lead(first.driver.renew())

    assert second.publish(0, ROWS)


# The cluster


def test_a_cluster_without_transactions_is_refused_in_one_line() -> None:
    stage = Stage()
    del stage.cluster.api_versions[24]

    with pytest.raises(ClusterUnfit, match=r"no transactions: .* Apache Kafka 3\.6") as told:
        stage.run().take_over()

    assert "\n" not in str(told.value)


@pytest.mark.parametrize("value", ["false", None])
def test_brokers_that_do_not_verify_partitions_are_refused(value: str | None) -> None:
    stage = Stage()
    name = "transaction.partition.verification.enable"
    if value is None:
        del stage.coordinator.settings[name]
    else:
        stage.coordinator.settings[name] = value

    with pytest.raises(ClusterUnfit, match=name):
        stage.run().take_over()


def test_an_old_kafka_is_refused_by_the_versions_that_it_speaks() -> None:
    stage = Stage()
    stage.cluster.api_versions[9] = (0, 7)

    with pytest.raises(ClusterUnfit, match="no version 8 to 9 of OffsetFetch"):
        stage.run().take_over()


def test_a_topic_that_does_not_exist_is_named() -> None:
    stage = Stage()

    with pytest.raises(SinkRefused, match="topic nowhere does not exist"):
        stage.run(topics=(TOPIC, "nowhere")).take_over()


def test_a_transaction_timeout_above_the_brokers_is_refused_before_anything() -> None:
    stage = Stage()

    with pytest.raises(SinkRefused, match=r"transaction\.max\.timeout\.ms=900000"):
        stage.run(transaction_timeout_ms=900_001).take_over()

    assert stage.asked(InitProducerIdRequest) == 0


def test_without_a_wish_the_timeout_is_ten_minutes_or_the_brokers_maximum() -> None:
    stage = Stage()
    assert begun_by(stage.run().take_over(), 0).transaction_timeout_ms == 600_000
    stage.coordinator.settings["transaction.max.timeout.ms"] = "30000"

    run = stage.run(name="B").take_over()

    assert begun_by(run, 0).transaction_timeout_ms == 30_000


def test_a_batch_that_outlived_its_transaction_says_so() -> None:
    stage = Stage()
    run = stage.run(transaction_timeout_ms=10_000).take_over()
    receipts = run.write(begun_by(run, 0), ROWS)
    stage.cluster.clock.run_for(10_000)
    stage.coordinator.fence()

    with pytest.raises(TransactionTimedOut, match=r"transaction\.timeout\.ms is 10000"):
        run.commit(receipts)

    assert stage.committed() == []


def test_a_task_that_is_fenced_late_is_explained_by_the_timeout() -> None:
    stage = Stage()
    run = stage.run(transaction_timeout_ms=10_000).take_over()
    begun_by(run, 0)
    stage.cluster.clock.run_for(10_000)

    with pytest.raises(TransactionTimedOut, match="47; the batch was open for"):
        run.lead(run.driver.give_up(Fenced("47"), now_ms=run.host.now_ms))

    assert run.driver.open is None


def test_coordinators_that_move_are_looked_up_again() -> None:
    stage = Stage()
    run = stage.run().take_over()
    stage.coordinator.nodes = {0: 1, 1: 2}

    assert run.publish(0, ROWS)

    stage.coordinator.nodes = {0: 3, 1: 3}
    stage.cluster.kill(2)
    assert run.publish(1, {0: ["e"]})
    assert stage.committed() == ["a", "b", "c", "d", "e"]


def test_the_age_of_the_open_transaction_is_told() -> None:
    stage = Stage()
    run = stage.run().take_over()
    assert run.driver.open_for_ms(run.host.now_ms) is None
    begun_by(run, 0)

    stage.cluster.clock.run_for(1_234)

    assert run.driver.open_for_ms(run.host.now_ms) == 1_234


def test_a_marker_is_fresh_for_shorter_than_a_takeover_is_contested() -> None:
    assert protocol.FRESH_MS < protocol.CONTEST_MS


def test_the_marker_stands_at_the_first_topic() -> None:
    stage = Stage()
    stage.cluster.create("aaa")
    stage.run(topics=(TOPIC, "aaa")).take_over()

    assert stage.coordinator.marker is not None
    assert str(stage.coordinator.marker[0]) == "aaa-0"
    stage.run(name="B").take_over()
    assert str(stage.coordinator.marker[0]) == "aaa-0"
    assert P0.topic == TOPIC
