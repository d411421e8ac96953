"""The observer sees what is there, tells it in small pieces, and disturbs nothing."""

from __future__ import annotations

import pytest

from tidelog.judge.cluster.facts import METADATA
from tidelog.judge.excuses import TailLost
from tidelog.worlds.simulator.log_watch import LogWatch
from tidelog.worlds.simulator.profiles.replication import ReplicationRun
from tidelog.worlds.simulator.steps import from_text

SEED = 4


@pytest.fixture(scope="module")
def quiet() -> ReplicationRun:
    """A run in which nothing happens but work."""
    run = ReplicationRun(SEED, only=[])
    verdict = run.run()
    assert verdict.anomalies == ()
    assert verdict.operations > 500
    return run


def test_every_replica_of_every_partition_is_seen_with_its_log(quiet: ReplicationRun) -> None:
    model = quiet.context.checker.model
    assert len(model.partitions) == sum(topic.partitions for topic in quiet.plan.topics)
    for name, known in model.partitions.items():
        ends = {model.log_copy(name, node_id).end_offset for node_id in known.replicas}
        assert len(ends) == 1 and ends.pop() > 0
        assert (
            model.committed_log(name).end_offset
            == model.log_copy(name, known.replicas[0]).end_offset
        )


def test_committed_metadata_is_replayed_as_the_nodes_do(quiet: ReplicationRun) -> None:
    observed = quiet.context.observation.metadata
    assert observed.end_offset == quiet.context.checker.model.committed_log(METADATA).end_offset
    for node in quiet.context.cluster.running.values():
        assert node.image == observed.image


def test_a_watch_sees_each_batch_once_and_what_follows_a_cut_again(quiet: ReplicationRun) -> None:
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
    run = ReplicationRun(SEED, only=[])
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


def test_a_run_without_its_observer_takes_the_same_course() -> None:
    """Looking at logs must not count as an operation of a disk that is about to fail."""

    def course(*, is_observed: bool) -> list[str]:
        run = ReplicationRun(SEED, only=from_text("none", count=0))
        if not is_observed:
            for process in run.context.cluster.processes.values():
                process.on_ticked = process.on_ending = None
        run._set_up()
        run.world.run_for(300)
        return list(run.world.trace.lines())

    assert course(is_observed=True) == course(is_observed=False)
