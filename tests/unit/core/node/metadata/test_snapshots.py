"""Snapshots: they stand for the beginning of the metadata log, on one node and between nodes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.core.metadata.given import broker, topic_id
from tests.unit.core.node.metadata_lives import Directory, Machine, new_topic
from tests.unit.core.node.quorums import METADATA_DIRECTORY, QuorumCluster
from tidelog.core.metadata.changes import (
    BrokerUnregistered,
    ConfigChanged,
    PartitionChanged,
    TopicCreated,
    TopicDeleted,
)
from tidelog.core.metadata.image import ClusterImage
from tidelog.core.metadata.records import ConfigRecord, MetadataRecord, RemoveTopicRecord
from tidelog.core.model.ids import TopicPartition
from tidelog.core.model.trace import ListTrace
from tidelog.core.node.metadata.image_delta import changes_between
from tidelog.core.node.metadata.metadata_records import MetadataUnreadable
from tidelog.core.node.metadata.snapshot_content import image_of, snapshot_of
from tidelog.core.node.metadata.snapshots import SnapshotLoaded, SnapshotWritten
from tidelog.core.quorum.values import LogPosition
from tidelog.core.storage.directory import LogDirectory
from tidelog.core.storage.log import Log
from tidelog.worlds.simulator.disk import SimDisk

OFTEN = {"metadata.log.max.record.bytes.between.snapshots": "2000"}
POSITION = LogPosition(3, 40)


def an_image(*records: MetadataRecord) -> ClusterImage:
    image = ClusterImage()
    for record in records:
        image.apply(record)
    return image


def facts(image: ClusterImage) -> list[bytes]:
    return [repr(record).encode() for record in image.records()]


def test_an_image_comes_back_from_its_snapshot() -> None:
    image = an_image(broker(1), *new_topic(1, partitions=1_200), *new_topic(2))

    content = snapshot_of(image, POSITION, timestamp_ms=5)

    assert facts(image_of(memoryview(content))) == facts(image)


def test_a_snapshot_without_its_end_is_none() -> None:
    content = snapshot_of(an_image(*new_topic(1)), POSITION, timestamp_ms=5)

    for length in (0, 70, len(content) // 2, len(content) - 1):
        with pytest.raises(MetadataUnreadable):
            image_of(memoryview(content)[:length])
    content[len(content) // 2] ^= 4
    with pytest.raises(MetadataUnreadable, match="damaged"):
        image_of(memoryview(content))


def test_the_difference_of_two_images_is_told_as_changes() -> None:
    again = new_topic(3, partitions=1)
    before = an_image(broker(1), broker(2), *new_topic(1), *new_topic(2, partitions=1))
    after = an_image(
        broker(1), *new_topic(2, partitions=2), *again,
        ConfigRecord(resource_type=2, resource_name="t3", name="retention.ms", value="5"),
    )  # fmt: skip

    changes = list(changes_between(before, after))

    assert changes[0] == TopicDeleted(topic="t1", topic_id=topic_id(1), partitions_count=2)
    assert any(isinstance(each, BrokerUnregistered) and each.broker_id == 2 for each in changes)
    assert any(isinstance(each, ConfigChanged) and each.value == "5" for each in changes)
    assert TopicCreated(topic="t3", topic_id=topic_id(3)) in changes
    told = [(c.topic, c.index) for c in changes if isinstance(c, PartitionChanged)]
    assert told == [("t2", 1), ("t3", 0)]
    assert list(changes_between(after, after)) == []


def many_topics(machine: Machine, count: int) -> None:
    """One life that makes topics and deletes all but the newest."""
    run = machine.start(settings=OFTEN)
    for number in range(1, count + 1):
        run.propose(new_topic(number, partitions=4), [], "")
        if number > 1:
            run.propose([RemoveTopicRecord(topic_id=topic_id(number - 1))], [], "")
        machine.settle()
    run.disk.detach()


def names_in(machine: Machine) -> list[str]:
    paths = (path for path, _ in machine.store.files())
    return [path.rpartition("/")[2] for path in paths if path.startswith(METADATA_DIRECTORY)]


def test_a_node_alone_writes_snapshots_and_begins_with_the_newest() -> None:
    machine = Machine()
    many_topics(machine, 60)

    run = machine.start(settings=OFTEN)

    assert set(run.image.topics) == {"t60"}
    (loaded,) = run.trace.of(SnapshotLoaded)
    assert loaded.because == "start"
    assert run.metadata.log.log_start_offset > 0
    checkpoints = [name for name in names_in(machine) if name.endswith(".checkpoint")]
    assert len(checkpoints) == 2
    assert f"{loaded.end_offset:020d}-0000000001.checkpoint" in checkpoints


class KeptDirectory(Directory):
    """A real log directory: what was deleted does not come back."""

    def __init__(self, disk: SimDisk, trace: ListTrace) -> None:
        super().__init__(disk, trace)
        self.kept = LogDirectory.open(disk=disk, path="data", trace=trace)

    def open_log(self, topic_partition: TopicPartition, **keywords: Any) -> Log:
        return self.kept.open_log(topic_partition, **keywords)


@pytest.mark.parametrize("seed", range(30))
def test_a_power_loss_while_snapshots_are_written_loses_nothing(seed: int) -> None:
    machine = Machine(seed)
    answered: list[str] = []
    number = 0
    for _ in range(4):
        run = machine.start(KeptDirectory, settings=OFTEN)
        assert isinstance(run.directory, KeptDirectory)
        assert set(answered) <= set(run.image.topics)
        for _ in range(12):
            number += 1
            run.directory.kept.write_checkpoints()
            run.directory.kept.delete_due_files(number)
            run.propose(new_topic(number, partitions=6), answered, f"t{number}")
            for _ in range(machine.world.random_for(f"steps/{number}").randint(0, 8)):
                machine.world.step()
        run.disk.detach()
        machine.store.lose_power()


def far_behind() -> QuorumCluster:
    """Node 3 is away while snapshots replace the log that it would need."""
    quorum = QuorumCluster(settings=OFTEN)
    quorum.agree_on("before")
    quorum.cluster.kill(3)
    for number in range(120):
        quorum.propose(str(number))
        quorum.run(4)
    quorum.until(lambda: quorum.node(1).metadata.log.log_start_offset > 20)
    return quorum


def test_a_node_that_is_far_behind_takes_a_snapshot() -> None:
    quorum = far_behind()

    quorum.cluster.start(3)
    quorum.come_to_rest()

    assert quorum.value_on(3) == "119"
    assert any("far behind" in line for line in quorum.events("SnapshotLoaded"))
    quorum.agree_on("after")
    assert quorum.value_on(3) == "after"


def test_a_new_node_begins_with_a_snapshot_and_may_then_lead() -> None:
    quorum = far_behind()
    quorum.cluster.wipe(3)
    quorum.cluster.start(3)
    quorum.come_to_rest()
    assert quorum.value_on(3) == "119"

    quorum.cluster.kill(1)
    quorum.until(lambda: quorum.leader in (2, 3))
    quorum.cluster.kill(2)
    quorum.cluster.start(1)
    quorum.until(lambda: quorum.leader in (1, 3))
    quorum.agree_on("after")

    assert quorum.value_on(3) == quorum.value_on(1) == "after"


def test_a_node_that_took_a_snapshot_restarts_with_it() -> None:
    quorum = far_behind()
    quorum.cluster.start(3)
    quorum.until(lambda: any("far behind" in e for e in quorum.events("SnapshotLoaded")))
    quorum.cluster.lose_power(3)

    quorum.cluster.start(3)
    quorum.come_to_rest()

    assert quorum.value_on(3) == "119"


def test_a_snapshot_that_comes_in_pieces_is_put_together() -> None:
    quorum = far_behind()
    quorum.cluster.configure(3, {"controller.quorum.fetch.snapshot.max.bytes": "100"})

    quorum.cluster.start(3)
    quorum.come_to_rest()

    assert quorum.value_on(3) == "119"


def test_every_node_writes_its_own_snapshots() -> None:
    quorum = QuorumCluster(settings=OFTEN)
    for number in range(60):
        quorum.propose(str(number))
        quorum.run(4)

    for key in (1, 2, 3):
        assert any(f"node_id={key}" in line for line in quorum.events(SnapshotWritten.__name__))
