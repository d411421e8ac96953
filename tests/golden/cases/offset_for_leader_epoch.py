"""OffsetForLeaderEpoch: where leader epochs end."""

from __future__ import annotations

from typing import Any

from tests.golden.batches import batch
from tests.golden.cases.registry import case
from tests.golden.talk import Talk

EDGES = (2, 4)


def ask(talk: Talk, version: int, topic: str, leader_epoch: int, **options: Any) -> None:
    asked = {"partition": options.pop("partition", 0), "leader_epoch": leader_epoch, **options}
    fields: dict[str, Any] = {"topics": [{"topic": topic, "partitions": [asked]}]}
    if version >= 3:
        fields["replica_id"] = -1
    talk.ask("OffsetForLeaderEpoch", version, **fields)


@case("OffsetForLeaderEpoch", 2, 3, 4)
def of_the_current_epoch(talk: Talk, version: int) -> None:
    """The current leader epoch ends where the log ends."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a", "b"))
    ask(talk, version, topic.name, 0)


@case("OffsetForLeaderEpoch", *EDGES)
def of_an_empty_log(talk: Talk, version: int) -> None:
    """A log without records."""
    ask(talk, version, talk.new_topic().name, 0)


@case("OffsetForLeaderEpoch", *EDGES)
def of_a_future_epoch(talk: Talk, version: int) -> None:
    """An epoch that never was."""
    topic = talk.new_topic()
    talk.fill(topic)
    ask(talk, version, topic.name, 5)


@case("OffsetForLeaderEpoch", *EDGES)
def of_a_negative_epoch(talk: Talk, version: int) -> None:
    """Epoch -1."""
    topic = talk.new_topic()
    talk.fill(topic)
    ask(talk, version, topic.name, -1)


@case("OffsetForLeaderEpoch", *EDGES)
def of_epoch_minus_two(talk: Talk, version: int) -> None:
    """An epoch below every epoch."""
    topic = talk.new_topic()
    talk.fill(topic)
    ask(talk, version, topic.name, -2)


@case("OffsetForLeaderEpoch", *EDGES)
def with_the_current_leader_epoch(talk: Talk, version: int) -> None:
    """Naming the right current epoch is fine."""
    topic = talk.new_topic()
    talk.fill(topic)
    ask(talk, version, topic.name, 0, current_leader_epoch=0)


@case("OffsetForLeaderEpoch", *EDGES)
def with_a_future_leader_epoch(talk: Talk, version: int) -> None:
    """A current epoch that the broker does not know yet."""
    topic = talk.new_topic()
    talk.fill(topic)
    ask(talk, version, topic.name, 0, current_leader_epoch=2)


@case("OffsetForLeaderEpoch", *EDGES)
def of_an_unknown_topic(talk: Talk, version: int) -> None:
    """A topic that does not exist."""
    ask(talk, version, talk.name("missing"), 0)


@case("OffsetForLeaderEpoch", *EDGES)
def of_a_missing_partition(talk: Talk, version: int) -> None:
    """A partition index that the topic does not have."""
    ask(talk, version, talk.new_topic().name, 0, partition=3)


@case("OffsetForLeaderEpoch", *EDGES)
def without_topics(talk: Talk, version: int) -> None:
    """A request that names nothing."""
    talk.ask("OffsetForLeaderEpoch", version, topics=[])


@case("OffsetForLeaderEpoch", 4)
def after_records_were_deleted(talk: Talk, version: int) -> None:
    """Deleting every record leaves the epoch's end where it is."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"), batch("b"))
    gone = {"partition_index": 0, "offset": -1}
    fields = {"topics": [{"name": topic.name, "partitions": [gone]}], "timeout_ms": 5000}
    talk.quietly("DeleteRecords", 2, **fields)
    ask(talk, version, topic.name, 0)


@case("OffsetForLeaderEpoch", 4)
def by_the_debugging_replica(talk: Talk, version: int) -> None:
    """Replica id -2 may ask, too."""
    topic = talk.new_topic()
    talk.fill(topic)
    asked = [{"partition": 0, "leader_epoch": 0}]
    topics = [{"topic": topic.name, "partitions": asked}]
    talk.ask("OffsetForLeaderEpoch", version, replica_id=-2, topics=topics)


@case("OffsetForLeaderEpoch", 2, 4)
def several_partitions(talk: Talk, version: int) -> None:
    """Each partition has its own outcome."""
    topic = talk.new_topic(partitions=2)
    talk.fill(topic, batch("a"), partition=1)
    asked = [{"partition": index, "leader_epoch": 0} for index in (0, 1, 2)]
    topics = [{"topic": topic.name, "partitions": asked}]
    talk.ask("OffsetForLeaderEpoch", version, topics=topics)
