"""The metadata log: nothing is true before it is durable, and a crash leaves whole decisions."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tests.unit.core.metadata.given import broker, topic_id
from tests.unit.core.node.metadata_lives import (
    SEGMENT,
    WALL_MS,
    Directory,
    Machine,
    Run,
    new_topic,
)
from tidelog.core.controller.producer_ids import decide_block
from tidelog.core.metadata.changes import PartitionChanged, TopicCreated
from tidelog.core.metadata.records import (
    NoOpRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tidelog.core.model.ids import TopicPartition
from tidelog.core.node.metadata.metadata_log import MetadataLoaded, MetadataUnreadable
from tidelog.core.storage.log import Log
from tidelog.core.wire.control_records import LeaderChange, VoterRecord, read_leader_change
from tidelog.core.wire.record_batch import batches
from tidelog.core.wire.records import iterate


def test_a_fresh_node_agrees_with_itself() -> None:
    run = Machine().start()

    assert run.image.features["transaction.version"] == 2
    assert run.image.cluster_config() == {"min.insync.replicas": "1"}
    assert run.metadata.committed_end_offset == run.metadata.log.synced_end_offset
    (loaded,) = run.trace.of(MetadataLoaded)
    assert (loaded.records, loaded.topics) == (0, 0)
    assert run.metadata.controller_epoch == 1
    assert run.metadata.is_active


def test_the_log_begins_with_a_leader_change_as_kafkas_does() -> None:
    machine = Machine()
    machine.start()

    view = memoryview(machine.bytes_of(SEGMENT))
    (first, header), (second, other), *_ = batches(view)

    assert header.is_control
    assert (header.leader_epoch, other.leader_epoch) == (1, 1)
    (record,) = iterate(view, first)
    voter = VoterRecord(1)
    assert read_leader_change(record) == LeaderChange(1, (voter,), (voter,))
    values = [record.value or b"" for record in iterate(view, second)]
    assert len(values) == 5  # four features, one setting
    assert all(value[0] == 1 for value in values), "the frame version"
    assert other.base_timestamp_ms == WALL_MS


def test_a_proposal_is_true_only_when_it_is_durable() -> None:
    machine = Machine()
    run = machine.start()
    done: list[str] = []

    run.propose(new_topic(1), done, "t1")

    assert done == []
    assert not run.image.topics
    assert set(run.metadata.decided_image.topics) == {"t1"}
    machine.settle()
    assert done == ["t1"]
    assert set(run.image.topics) == {"t1"}
    assert run.changes[0] == TopicCreated(topic="t1", topic_id=topic_id(1))
    assert len(run.changes) == 3
    assert run.metadata.committed_end_offset == run.metadata.log.log_end_offset


def test_answers_come_in_the_order_of_the_proposals_and_empty_ones_wait_their_turn() -> None:
    machine = Machine()
    run = machine.start()
    done: list[str] = []

    run.propose([], done, "at once")
    assert done == ["at once"]

    run.propose(new_topic(1), done, "t1")
    run.propose([], done, "refusal")
    run.propose(new_topic(2), done, "t2")
    assert done == ["at once"]

    machine.settle()
    assert done == ["at once", "t1", "refusal", "t2"]


def test_a_proposal_may_follow_from_an_answer() -> None:
    machine = Machine()
    run = machine.start()
    done: list[str] = []

    run.metadata.propose(new_topic(1), lambda: run.propose(new_topic(2), done, "second"), now_ms=0)
    machine.settle()

    assert done == ["second"]
    assert set(run.image.topics) == {"t1", "t2"}


def test_a_restart_replays_and_leads_in_a_new_epoch() -> None:
    machine = Machine()
    first = machine.start()
    first.propose(new_topic(1), [], "")
    machine.settle()
    first.disk.detach()

    second = machine.start()

    assert second.metadata.controller_epoch == 2
    assert second.metadata.is_active
    assert second.changes == [
        PartitionChanged(
            topic="t1", topic_id=topic_id(1), index=index, leader=1, leader_epoch=0,
            partition_epoch=0, replicas=(1,), isr=(1,), eligible_leader_replicas=(),
            leader_is_recovering=False,
        )
        for index in range(2)
    ]  # fmt: skip


def test_a_restart_tells_what_is_there_and_not_how_it_came_to_be() -> None:
    machine = Machine()
    first = machine.start()
    again = new_topic(2, partitions=1)
    assert isinstance(again[0], TopicRecord)
    again[0].name = "t1"
    first.propose(new_topic(1), [], "")
    first.propose([RemoveTopicRecord(topic_id=topic_id(1)), *again], [], "")
    machine.settle()
    first.disk.detach()

    second = machine.start()

    (change,) = second.changes
    assert isinstance(change, PartitionChanged)
    assert (change.topic, change.topic_id) == ("t1", topic_id(2))


@pytest.mark.parametrize("seed", range(60))
def test_a_power_loss_keeps_every_answered_proposal_and_no_half_of_one(seed: int) -> None:
    machine = Machine(seed)
    chance = Random(seed)
    answered: set[str] = set()
    number = 0
    for _ in range(3):
        run = machine.start()
        found = set(run.image.topics)
        assert answered <= found
        assert all(len(topic.partitions) == 3 for topic in run.image.topics.values())
        run.image.check()

        done: list[str] = []
        for _ in range(chance.randint(1, 6)):
            number += 1
            run.propose(new_topic(number, partitions=3), done, f"t{number}")
            for _ in range(chance.randint(0, 4)):
                machine.world.step()
        answered |= set(done)
        run.disk.detach()
        machine.store.lose_power()


@pytest.mark.scenario("D4-I3")
@pytest.mark.parametrize("seed", range(30))
def test_no_block_of_producer_ids_is_given_twice_over_power_losses(seed: int) -> None:
    machine = Machine(seed)
    chance = Random(seed)
    given: list[int] = []
    for _ in range(4):
        run = machine.start()
        for _ in range(chance.randint(1, 5)):
            take_block(run, given)
        for _ in range(chance.randint(0, 6)):
            machine.world.step()
        run.disk.detach()
        machine.store.lose_power()

    assert len(set(given)) == len(given)


def take_block(run: Run, given: list[int]) -> None:
    if not run.metadata.decided_image.brokers:
        run.metadata.propose([broker(1)], None, now_ms=0)
    record, block = decide_block(run.metadata.decided_image, broker_id=1)
    run.metadata.propose([record], lambda: given.append(block.start), now_ms=0)


def test_a_full_disk_answers_nobody_and_fails_the_log() -> None:
    machine = Machine()
    run = machine.start()
    done: list[str] = []
    machine.store.fill_up(bytes_left=10)

    run.propose(new_topic(1), done, "t1")
    machine.settle()

    assert done == []
    assert run.failures
    assert not run.image.topics
    assert not run.metadata.decided_image.topics


def test_a_damaged_log_stops_the_start_with_its_reason() -> None:
    machine = Machine()
    run = machine.start()
    run.propose(new_topic(1), [], "")
    run.propose([NoOpRecord()], [], "")
    machine.settle()
    run.disk.detach()
    content = machine.bytes_of(SEGMENT)
    position = content.index(b"t1")

    class Decaying(Directory):
        """A bit flips after the log was recovered."""

        def open_log(self, topic_partition: TopicPartition, **keywords: Any) -> Log:
            log = super().open_log(topic_partition, **keywords)
            machine.store.flip_bit(SEGMENT, position=position, bit=3)
            return log

    with pytest.raises(MetadataUnreadable, match="damaged at offset"):
        machine.start(Decaying)


def test_many_partitions_are_told_again() -> None:
    machine = Machine()
    first = machine.start()
    first.propose(new_topic(1, partitions=9_000), [], "")
    first.propose(new_topic(2, partitions=2_000), [], "")
    machine.settle()
    first.disk.detach()

    second = machine.start()

    assert len(second.changes) == 11_000
    assert second.metadata.committed_end_offset == second.metadata.log.log_end_offset


def test_a_block_of_producer_ids_survives_a_restart_as_used() -> None:
    machine = Machine()
    run = machine.start()
    run.propose([ProducerIdsRecord(broker_id=1, next_producer_id=5_000)], [], "")
    machine.settle()
    run.disk.detach()

    second = machine.start()
    given: list[int] = []
    take_block(second, given)
    machine.settle()

    assert given == [5_000]
    assert second.image.next_producer_id == 6_000


def test_whoever_waits_for_an_offset_hears_when_the_image_has_it() -> None:
    machine = Machine()
    run = machine.start()
    heard: list[str] = []
    run.propose(new_topic(1), [], "")
    end_offset = run.metadata.log.log_end_offset

    run.metadata.when_applied(end_offset, lambda: heard.append("topic"))
    run.metadata.when_applied(end_offset + 1, lambda: heard.append("later"))
    run.metadata.when_applied(1, lambda: heard.append("at once"))
    assert heard == ["at once"]

    machine.settle()
    assert heard == ["at once", "topic"]
    run.propose([NoOpRecord()], [], "")
    machine.settle()
    assert heard == ["at once", "topic", "later"]


class Office:
    """Somebody who works only while this node is the active controller."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def on_activated(self, now_ms: int) -> None:
        self.heard.append("activated")

    def on_resigned(self, now_ms: int) -> None:
        self.heard.append("resigned")


def test_a_leader_that_resigns_drops_what_is_not_committed() -> None:
    machine = Machine()
    run = machine.start()
    office = Office()
    run.metadata.activations.append(office)
    done: list[str] = []
    lost: list[str] = []
    run.metadata.propose(
        new_topic(1),
        lambda: done.append("t1"),
        otherwise=lambda: lost.append("t1"),
        now_ms=0,
    )

    run.quorum.resign(0)

    assert (done, lost) == ([], ["t1"])
    assert office.heard == ["resigned"]
    assert not run.metadata.is_active
    assert run.metadata.decided_image is run.image
    run.metadata.propose([], None, otherwise=lambda: lost.append("too late"), now_ms=0)
    assert lost == ["t1", "too late"]
    run.metadata.check()
    run.quorum.check()
