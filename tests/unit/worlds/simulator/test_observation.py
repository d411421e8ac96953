"""The observer sees what is there, tells it in small pieces, and disturbs nothing."""

from __future__ import annotations

import pytest

from tidelog.judge.cluster.facts import METADATA
from tidelog.judge.excuses import TailLost
from tidelog.worlds.simulator.disk import SimFile
from tidelog.worlds.simulator.log_watch import LogWatch
from tidelog.worlds.simulator.observation import safe_end_offset
from tidelog.worlds.simulator.profiles.planned_run import PlannedRun
from tidelog.worlds.simulator.profiles.replication_plan import make_replication_plan
from tidelog.worlds.simulator.profiles.storage_plan import make_storage_plan
from tidelog.worlds.simulator.steps import from_text

SEED = 4


@pytest.fixture(scope="module")
def quiet() -> PlannedRun:
    """A run in which nothing happens but work."""
    run = PlannedRun(make_replication_plan, SEED, only=[])
    verdict = run.run()
    assert verdict.anomalies == ()
    assert verdict.operations > 500
    return run


def test_every_replica_of_every_partition_is_seen_with_its_log(quiet: PlannedRun) -> None:
    model = quiet.context.checker.model
    assert len(model.partitions) == sum(topic.partitions for topic in quiet.plan.topics)
    for name, known in model.partitions.items():
        ends = {model.log_copy(name, node_id).end_offset for node_id in known.replicas}
        assert len(ends) == 1 and ends.pop() > 0
        assert (
            model.committed_log(name).end_offset
            == model.log_copy(name, known.replicas[0]).end_offset
        )


def test_committed_metadata_is_replayed_as_the_nodes_do(quiet: PlannedRun) -> None:
    observed = quiet.context.observation.metadata
    assert observed.end_offset == quiet.context.checker.model.committed_log(METADATA).end_offset
    for node in quiet.context.cluster.running.values():
        assert node.image == observed.image


def test_a_watch_sees_each_batch_once_and_what_follows_a_cut_again(quiet: PlannedRun) -> None:
    node = next(iter(quiet.context.cluster.running.values()))
    log = next(partition.log for partition in node.partitions if partition.log.log_end_offset)
    watch = LogWatch(log)
    batches = watch.new_batches()

    assert batches[0].base_offset == log.log_start_offset
    assert batches[-1].end_offset == log.log_end_offset
    assert watch.new_batches() == []

    watch.rewind(batches[-1].base_offset)
    assert watch.new_batches() == batches[-1:]


@pytest.mark.parametrize("starts_anew", [False, True])
def test_a_power_loss_may_take_all_of_a_log_that_has_just_started_anew(starts_anew: bool) -> None:
    """Its fence of synced records stands at its start, but nothing of it is durable, not even it.

    A log that was synced as a whole stays, whatever was deleted from its head.
    """
    run = PlannedRun(make_replication_plan, SEED, only=[])
    run._set_up()
    run.world.run_for(300)
    process = run.context.cluster.processes[1]
    partition = next(each for each in run.context.cluster.node(1).partitions)
    log = partition.log
    if starts_anew:
        log.start_anew_at(log.log_end_offset + 1)
    else:
        log.files.sync_now(log.log_end_offset, with_parent=True)
        log.advance_high_watermark(log.log_end_offset)
        log.delete_records_before(log.log_end_offset)
    assert log.synced_end_offset == log.log_start_offset == log.log_end_offset > 0

    process.lose_power()

    lost = [each for each in run.context.checker.excuses() if isinstance(each, TailLost)]
    floors = {each.partition: each.floor_offset for each in lost}
    expected = 0 if starts_anew else log.log_end_offset
    assert floors[str(partition.topic_partition)] == expected


def test_what_was_safe_once_stays_so_unless_a_log_has_no_byte_left() -> None:
    run = PlannedRun(make_replication_plan, SEED, only=[])
    run._set_up()
    run.world.run_for(300)
    log = next(each for each in run.context.cluster.node(1).partitions).log
    log.files.sync_now(log.log_end_offset, with_parent=True)

    assert safe_end_offset(log, 0) == log.log_end_offset
    assert safe_end_offset(log, log.log_end_offset + 5) == log.log_end_offset + 5
    log.start_anew_at(log.log_end_offset + 1)
    assert safe_end_offset(log, log.log_end_offset) == 0


def test_a_watch_sees_a_batch_as_it_was_written_through_damage_in_its_header() -> None:
    run = PlannedRun(make_storage_plan, SEED, only=[])
    run._set_up()
    run.world.run_for(1_500)
    partition = next(each for each in run.context.cluster.node(1).partitions)
    partition.log.files.sync_now(partition.log.log_end_offset, with_parent=True)
    before = LogWatch(partition.log).new_batches()
    file = partition.log.files.segments[0].file
    assert isinstance(file, SimFile)
    intact = bytes(file.node.data)

    assert run.faults.damages.flip(str(partition.topic_partition), in_header=True) == 1

    assert sum(a != b for a, b in zip(intact, file.node.data, strict=True)) <= 1
    assert LogWatch(partition.log).new_batches() == before
    damage = run.faults.damages.excuses()[0]
    assert any(batch.base_offset == damage.start_offset for batch in before[:-1])
    run.faults.damages.repair_all()
    assert bytes(file.node.data) == intact and file.node.damages == []


def test_a_run_without_its_observer_takes_the_same_course() -> None:
    """Looking at logs must not count as an operation of a disk that is about to fail."""

    def course(*, is_observed: bool) -> list[str]:
        run = PlannedRun(make_replication_plan, SEED, only=from_text("none", count=0))
        if not is_observed:
            for process in run.context.cluster.processes.values():
                process.on_ticked = process.on_ending = None
        run._set_up()
        run.world.run_for(300)
        return list(run.world.trace.lines())

    assert course(is_observed=True) == course(is_observed=False)
