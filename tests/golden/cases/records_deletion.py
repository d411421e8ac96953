"""DeleteRecords: the start of a log moves, within its bounds."""

from __future__ import annotations

from typing import Any

from tests.golden.batches import batch
from tests.golden.cases.asking import list_offsets
from tests.golden.cases.registry import case
from tests.golden.talk import Talk, Topic

VERSIONS = (0, 1, 2)
EDGES = (0, 2)


def delete(talk: Talk, version: int, name: str, *offsets: int, partition: int = 0) -> Any:
    asked = [{"partition_index": partition, "offset": offset} for offset in offsets]
    topics = [{"name": name, "partitions": asked}]
    return talk.ask("DeleteRecords", version, topics=topics, timeout_ms=5000)


def three_records(talk: Talk) -> Topic:
    topic = talk.new_topic()
    talk.fill(topic, batch("a"), batch("b", "c"))
    return topic


@case("DeleteRecords", *VERSIONS)
def up_to_an_offset(talk: Talk, version: int) -> None:
    """The log starts at the offset, even inside a batch."""
    topic = three_records(talk)
    delete(talk, version, topic.name, 2)
    list_offsets(talk, 7, topic.name, -2)
    talk.ask(
        "Fetch",
        12,
        max_wait_ms=0,
        min_bytes=0,
        topics=[
            {
                "topic": topic.name,
                "partitions": [{"partition": 0, "fetch_offset": 2, "partition_max_bytes": 1000}],
            }
        ],
    )


@case("DeleteRecords", *EDGES)
def up_to_the_high_watermark(talk: Talk, version: int) -> None:
    """-1 means everything that can be read."""
    topic = three_records(talk)
    delete(talk, version, topic.name, -1)
    list_offsets(talk, 7, topic.name, -2)


@case("DeleteRecords", *EDGES)
def up_to_the_end(talk: Talk, version: int) -> None:
    """The end offset itself is allowed."""
    delete(talk, version, three_records(talk).name, 3)


@case("DeleteRecords", *EDGES)
def beyond_the_end(talk: Talk, version: int) -> None:
    """An offset beyond the high watermark is out of range."""
    delete(talk, version, three_records(talk).name, 4)


@case("DeleteRecords", *EDGES)
def below_the_start(talk: Talk, version: int) -> None:
    """An offset below the start changes nothing."""
    topic = three_records(talk)
    delete(talk, version, topic.name, 2)
    delete(talk, version, topic.name, 1)
    delete(talk, version, topic.name, 0)


@case("DeleteRecords", *EDGES)
def at_a_negative_offset(talk: Talk, version: int) -> None:
    """-2 is no offset."""
    delete(talk, version, three_records(talk).name, -2)


@case("DeleteRecords", *EDGES)
def of_an_empty_log(talk: Talk, version: int) -> None:
    """Nothing to delete."""
    topic = talk.new_topic()
    delete(talk, version, topic.name, 0)
    delete(talk, version, topic.name, -1)


@case("DeleteRecords", *EDGES)
def of_an_unknown_topic(talk: Talk, version: int) -> None:
    """A topic that does not exist."""
    delete(talk, version, talk.name("missing"), 0)


@case("DeleteRecords", *EDGES)
def of_a_missing_partition(talk: Talk, version: int) -> None:
    """A partition index that the topic does not have."""
    delete(talk, version, talk.new_topic().name, 0, partition=5)


@case("DeleteRecords", *EDGES)
def of_a_compacted_topic(talk: Talk, version: int) -> None:
    """Records of a topic that is only compacted cannot be deleted so."""
    topic = talk.new_topic(configs={"cleanup.policy": "compact"})
    delete(talk, version, topic.name, 0)


@case("DeleteRecords", 2)
def of_a_compacted_and_deleted_topic(talk: Talk, version: int) -> None:
    """With both policies they can."""
    topic = talk.new_topic(configs={"cleanup.policy": "compact,delete"})
    delete(talk, version, topic.name, 0)


@case("DeleteRecords", *EDGES)
def of_one_partition_twice(talk: Talk, version: int) -> None:
    """The same partition twice in one request."""
    delete(talk, version, three_records(talk).name, 1, 2)


@case("DeleteRecords", *EDGES)
def without_topics(talk: Talk, version: int) -> None:
    """A request that names nothing."""
    talk.ask("DeleteRecords", version, topics=[], timeout_ms=5000)


@case("DeleteRecords", *EDGES)
def of_several_partitions(talk: Talk, version: int) -> None:
    """Each partition has its own outcome."""
    topic = talk.new_topic(partitions=2)
    talk.fill(topic, batch("a", "b"), partition=1)
    asked = [{"partition_index": index, "offset": 1} for index in (0, 1, 4)]
    topics = [{"name": topic.name, "partitions": asked}]
    talk.ask("DeleteRecords", version, topics=topics, timeout_ms=5000)
