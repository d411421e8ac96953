"""Fetch without sessions: where reading begins, whom it may ask, and what comes back."""

from __future__ import annotations

from tests.golden.batches import GZIP, batch
from tests.golden.cases.asking import fetch, fetched_topic, fetching, produce
from tests.golden.cases.registry import case
from tests.golden.talk import MADE_UP_ID, Talk, Topic

VERSIONS = (4, 5, 7, 9, 11, 12, 13, 15, 16, 17, 18)
EDGES = (4, 18)


@case("Fetch", *VERSIONS)
def from_the_beginning(talk: Talk, version: int) -> None:
    """Everything from offset 0 on, with the partition's fences."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a", "b"), batch("c"))
    fetch(talk, version, topic)


@case("Fetch", *EDGES)
def from_the_middle_of_a_batch(talk: Talk, version: int) -> None:
    """An offset inside a batch gets the whole batch."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"), batch("b", "c", "d"), batch("e"))
    fetch(talk, version, topic, 2)


@case("Fetch", *EDGES)
def at_the_end(talk: Talk, version: int) -> None:
    """The end of the log is a valid place to read from: nothing is there yet."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic, 1)


@case("Fetch", *EDGES)
def of_an_empty_partition(talk: Talk, version: int) -> None:
    """A partition that never held anything."""
    fetch(talk, version, talk.new_topic())


@case("Fetch", 4, 12, 18)
def beyond_the_end(talk: Talk, version: int) -> None:
    """An offset beyond the end is out of range."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic, 2)


@case("Fetch", *EDGES)
def before_the_beginning(talk: Talk, version: int) -> None:
    """An offset below the log start is out of range."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"), batch("b"), batch("c"))
    gone = {"partition_index": 0, "offset": 2}
    fields = {"topics": [{"name": topic.name, "partitions": [gone]}], "timeout_ms": 5000}
    talk.quietly("DeleteRecords", 2, **fields)
    fetch(talk, version, topic, 1)
    fetch(talk, version, topic, 2)


@case("Fetch", *EDGES)
def at_a_negative_offset(talk: Talk, version: int) -> None:
    """A negative offset is out of range."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic, -1)


@case("Fetch", 4, 12, 13, 18)
def of_an_unknown_topic(talk: Talk, version: int) -> None:
    """A topic that does not exist, by name or by id."""
    fetch(talk, version, Topic(talk.name("missing"), MADE_UP_ID))


@case("Fetch", 13, 18)
def of_the_zero_topic_id(talk: Talk, version: int) -> None:
    """The topic id of nobody."""
    fetch(talk, version, Topic("", bytes(16)))


@case("Fetch", 4, 18)
def of_a_missing_partition(talk: Talk, version: int) -> None:
    """A partition index that the topic does not have."""
    fetch(talk, version, talk.new_topic(), partition=3)


@case("Fetch", *EDGES)
def of_several_partitions(talk: Talk, version: int) -> None:
    """Each partition has its own outcome."""
    topic = talk.new_topic(partitions=3)
    talk.fill(topic, batch("a"), partition=0)
    talk.fill(topic, batch("b"), partition=2)
    fields = fetching(version, topic)
    asked = fields["topics"][0]["partitions"][0]
    fields["topics"][0]["partitions"] = [{**asked, "partition": index} for index in (0, 1, 2, 5)]
    talk.ask("Fetch", version, **fields)


@case("Fetch", 12, 18)
def of_one_partition_twice(talk: Talk, version: int) -> None:
    """The same partition twice in one request."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"), batch("b"))
    fields = fetching(version, topic)
    asked = fields["topics"][0]["partitions"][0]
    fields["topics"][0]["partitions"] = [asked, {**asked, "fetch_offset": 1}]
    talk.ask("Fetch", version, **fields)


@case("Fetch", 13, 18)
def of_topics_known_and_unknown(talk: Talk, version: int) -> None:
    """A topic that exists and one that does not, in one request."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fields = fetching(version, topic)
    asked = fields["topics"][0]["partitions"]
    fields["topics"].append(fetched_topic(version, Topic("", MADE_UP_ID), asked))
    talk.ask("Fetch", version, **fields)


@case("Fetch", 4, 7, 18)
def without_topics(talk: Talk, version: int) -> None:
    """A request that names nothing."""
    talk.ask("Fetch", version, max_wait_ms=0, min_bytes=0, topics=[])


@case("Fetch", 9, 12, 18)
def with_the_current_leader_epoch(talk: Talk, version: int) -> None:
    """Naming the right leader epoch is fine."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic, current_leader_epoch=0)


@case("Fetch", 9, 12, 16, 18)
def with_a_future_leader_epoch(talk: Talk, version: int) -> None:
    """A leader epoch that the broker does not know yet."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic, current_leader_epoch=9)


@case("Fetch", 12, 18)
def with_a_last_fetched_epoch(talk: Talk, version: int) -> None:
    """A reader whose last batch was of the log's own epoch does not diverge."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"), batch("b"))
    fetch(talk, version, topic, 1, current_leader_epoch=0, last_fetched_epoch=0)


@case("Fetch", 12, 18)
def with_a_last_fetched_epoch_of_the_future(talk: Talk, version: int) -> None:
    """A reader whose last batch was of an epoch that the log never had."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"), batch("b"))
    fetch(talk, version, topic, 1, current_leader_epoch=0, last_fetched_epoch=4)


@case("Fetch", 12, 18)
def diverging_beyond_the_end(talk: Talk, version: int) -> None:
    """A reader that has more of the epoch than the log is told where the log ends."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic, 5, current_leader_epoch=0, last_fetched_epoch=0)


@case("Fetch", *EDGES)
def read_committed(talk: Talk, version: int) -> None:
    """Without transactions everything is committed; the list of aborted ones is there."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"), batch("b"))
    fetch(talk, version, topic, request={"isolation_level": 1})


@case("Fetch", 4, 18)
def with_an_unknown_isolation_level(talk: Talk, version: int) -> None:
    """An isolation level that nobody has heard of."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic, request={"isolation_level": 2})


@case("Fetch", *EDGES)
def of_compressed_batches(talk: Talk, version: int) -> None:
    """Compressed batches leave as they came."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a", "b", compression=GZIP))
    fetch(talk, version, topic)


@case("Fetch", 9)
def of_zstd_below_version_ten(talk: Talk, version: int) -> None:
    """Readers before version 10 do not know zstd."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a", compression=4))
    fetch(talk, version, topic)
    fetch(talk, 10, topic)


@case("Fetch", 9)
def of_a_topic_set_to_zstd_below_version_ten(talk: Talk, version: int) -> None:
    """A topic that is set to zstd is refused to readers before version 10."""
    topic = talk.new_topic(configs={"compression.type": "zstd"})
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic)
    fetch(talk, 10, topic)


@case("Fetch", 13)
def of_a_topic_made_again(talk: Talk, version: int) -> None:
    """The id of a deleted topic stays unknown when its name is used again."""
    old = talk.new_topic()
    talk.fill(old, batch("a"))
    talk.quietly("DeleteTopics", 6, topics=[{"name": old.name}], timeout_ms=5000)
    talk.wait_until_gone(old.name)
    new = talk.new_topic()
    fetch(talk, version, old)
    fetch(talk, version, new)


@case("Fetch", 11, 18)
def with_a_rack(talk: Talk, version: int) -> None:
    """A reader's rack does not matter where there is one replica."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic, request={"rack_id": "here"})


@case("Fetch", 5, 18)
def with_a_log_start_offset(talk: Talk, version: int) -> None:
    """A consumer's log start offset is of no interest."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic, log_start_offset=7)


@case("Fetch", 12, 18)
def with_a_cluster_id(talk: Talk, version: int) -> None:
    """A cluster id of somebody else is ignored on an ordinary listener."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic, request={"cluster_id": "somebody else"})


@case("Fetch", 4)
def by_a_replica_that_is_none(talk: Talk, version: int) -> None:
    """A broker id that is not a replica of the partition may not fetch as one."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    fetch(talk, version, topic, request={"replica_id": 77})


@case("Fetch", 18)
def by_a_replica_state_that_is_none(talk: Talk, version: int) -> None:
    """The same in the form of version 15 and up."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    state = {"replica_id": 77, "replica_epoch": 1}
    fetch(talk, version, topic, request={"replica_state": state})


@case("Fetch", *EDGES)
def after_a_produce(talk: Talk, version: int) -> None:
    """What was acknowledged can be read at once."""
    topic = talk.new_topic()
    produce(talk, 13, topic, batch("a"))
    fetch(talk, version, topic)
