"""Produce: what is accepted, where it goes, and requests that are wrong as a whole."""

from __future__ import annotations

from tests.golden.batches import GZIP, LZ4, SNAPPY, ZSTD, NewRecord, batch, built, keyed
from tests.golden.cases.asking import fetch, list_offsets, produce, producing
from tests.golden.cases.registry import case
from tests.golden.talk import MADE_UP_ID, Talk, Topic

VERSIONS = (3, 5, 8, 9, 10, 12, 13)
EDGES = (3, 13)


@case("Produce", *VERSIONS)
def one_batch(talk: Talk, version: int) -> None:
    """A sound batch is appended at offset 0, the next one behind it."""
    topic = talk.new_topic()
    produce(talk, version, topic, batch("a", "b"))
    produce(talk, version, topic, batch("c"))
    fetch(talk, 13, topic)


@case("Produce", *EDGES)
def acks_one(talk: Talk, version: int) -> None:
    """acks=1 is answered with the offset as well."""
    produce(talk, version, talk.new_topic(), batch("a"), acks=1)


@case("Produce", *EDGES)
def acks_zero(talk: Talk, version: int) -> None:
    """acks=0 gets no answer, but the batch is in the log."""
    topic = talk.new_topic()
    talk.tell("Produce", version, **producing(version, topic, batch("a"), acks=0))
    list_offsets(talk, 7, topic.name, -1)


@case("Produce", *EDGES)
def acks_two(talk: Talk, version: int) -> None:
    """Only 0, 1 and -1 are acknowledgement counts."""
    topic = talk.new_topic()
    produce(talk, version, topic, batch("a"), acks=2)
    list_offsets(talk, 7, topic.name, -1)


@case("Produce", *EDGES)
def acks_minus_two(talk: Talk, version: int) -> None:
    """A negative count other than -1 is refused."""
    produce(talk, version, talk.new_topic(), batch("a"), acks=-2)


@case("Produce", *EDGES)
def acks_zero_with_an_error(talk: Talk, version: int) -> None:
    """A failed write with acks=0 is told by closing the connection."""
    missing = Topic(talk.name("missing"), MADE_UP_ID)
    talk.tell("Produce", version, **producing(version, missing, batch("a"), acks=0))


@case("Produce", 3, 9, 13)
def to_an_unknown_topic(talk: Talk, version: int) -> None:
    """A topic that does not exist (by name, or by id) is refused and not created."""
    missing = Topic(talk.name("missing"), MADE_UP_ID)
    produce(talk, version, missing, batch("a"))
    talk.ask("Metadata", 9, topics=[{"name": missing.name}], allow_auto_topic_creation=False)


@case("Produce", 3, 10, 13)
def to_a_missing_partition(talk: Talk, version: int) -> None:
    """A partition index that the topic does not have is unknown."""
    produce(talk, version, talk.new_topic(), batch("a"), partition=1)


@case("Produce", *EDGES)
def to_a_negative_partition(talk: Talk, version: int) -> None:
    """A negative partition index is unknown."""
    produce(talk, version, talk.new_topic(), batch("a"), partition=-1)


@case("Produce", 13)
def with_the_zero_topic_id(talk: Talk, version: int) -> None:
    """The topic id of nobody is unknown."""
    produce(talk, version, Topic("", bytes(16)), batch("a"))


@case("Produce", 3, 13)
def without_topics(talk: Talk, version: int) -> None:
    """A request without any topic is answered with nothing."""
    talk.ask("Produce", version, transactional_id=None, acks=-1, timeout_ms=1000, topic_data=[])


@case("Produce", 3, 9, 13)
def without_partitions(talk: Talk, version: int) -> None:
    """A topic without any partition."""
    topic = talk.new_topic()
    fields = producing(version, topic, None)
    fields["topic_data"][0]["partition_data"] = []
    talk.ask("Produce", version, **fields)


@case("Produce", 3, 9, 13)
def null_records(talk: Talk, version: int) -> None:
    """Null in place of records."""
    talk.ask_in_vain("Produce", version, **producing(version, talk.new_topic(), None))


@case("Produce", 3, 9, 13)
def empty_records(talk: Talk, version: int) -> None:
    """Zero bytes in place of records."""
    produce(talk, version, talk.new_topic(), b"")


@case("Produce", 3, 13)
def several_partitions(talk: Talk, version: int) -> None:
    """Each partition of a request has its own outcome."""
    topic = talk.new_topic(partitions=3)
    fields = producing(version, topic, None)
    fields["topic_data"][0]["partition_data"] = [
        {"index": 2, "records": batch("c")},
        {"index": 0, "records": batch("a", "b")},
        {"index": 7, "records": batch("x")},
        {"index": 1, "records": b""},
    ]
    talk.ask("Produce", version, **fields)
    list_offsets(talk, 7, topic.name, -1, partition=2)


@case("Produce", 3, 13)
def one_partition_twice(talk: Talk, version: int) -> None:
    """The same partition twice in one request."""
    topic = talk.new_topic()
    fields = producing(version, topic, None)
    fields["topic_data"][0]["partition_data"] = [
        {"index": 0, "records": batch("a")},
        {"index": 0, "records": batch("b", "c")},
    ]
    talk.ask("Produce", version, **fields)
    list_offsets(talk, 7, topic.name, -1)


@case("Produce", 3, 12)
def several_topics(talk: Talk, version: int) -> None:
    """Topics that exist and one that does not, in one request."""
    first, second = talk.new_topic("first"), talk.new_topic("second")
    fields = producing(version, first, batch("a"))
    for name in (second.name, talk.name("missing")):
        data = {"name": name, "partition_data": [{"index": 0, "records": batch("b")}]}
        fields["topic_data"].append(data)
    talk.ask("Produce", version, **fields)


@case("Produce", 3, 9, 13)
def gzip(talk: Talk, version: int) -> None:
    """A batch compressed with gzip is stored as it came."""
    topic = talk.new_topic()
    produce(talk, version, topic, batch("a", "b" * 50, compression=GZIP))
    fetch(talk, 13, topic)


@case("Produce", 3, 13)
def snappy(talk: Talk, version: int) -> None:
    """A batch compressed with snappy is stored as it came."""
    topic = talk.new_topic()
    produce(talk, version, topic, batch("a", "b" * 50, compression=SNAPPY))
    fetch(talk, 13, topic)


@case("Produce", 3, 13)
def lz4(talk: Talk, version: int) -> None:
    """A batch compressed with LZ4 is stored as it came."""
    topic = talk.new_topic()
    produce(talk, version, topic, batch("a", "b" * 50, compression=LZ4))
    fetch(talk, 13, topic)


@case("Produce", 3, 6, 7, 13)
def zstd(talk: Talk, version: int) -> None:
    """A batch compressed with zstd is only known from version 7 on."""
    topic = talk.new_topic()
    produce(talk, version, topic, batch("a", "b" * 50, compression=ZSTD))
    list_offsets(talk, 7, topic.name, -1)


@case("Produce", 13)
def keys_values_and_headers(talk: Talk, version: int) -> None:
    """Null keys, null and empty values and record headers come back as they were sent."""
    topic = talk.new_topic()
    headers = [("h", b"1"), ("h", None), ("", b"")]
    records = [
        NewRecord(key=None, value=b"v", timestamp_ms=1),
        NewRecord(key=b"k", value=None, timestamp_ms=2),
        NewRecord(key=b"", value=b"", timestamp_ms=3, headers=headers),
    ]
    produce(talk, version, topic, built(records))
    fetch(talk, version, topic)


@case("Produce", *EDGES)
def batch_too_large(talk: Talk, version: int) -> None:
    """A batch above the topic's max.message.bytes is refused."""
    topic = talk.new_topic(configs={"max.message.bytes": "200"})
    produce(talk, version, topic, batch("a" * 300))
    produce(talk, version, topic, batch("a" * 20))


@case("Produce", 13)
def batch_of_exactly_the_limit(talk: Talk, version: int) -> None:
    """A batch of max.message.bytes is accepted, one byte more is not."""
    limit = len(batch("a" * 100))
    topic = talk.new_topic(configs={"max.message.bytes": str(limit)})
    produce(talk, version, topic, batch("a" * 100))
    produce(talk, version, topic, batch("a" * 101))


@case("Produce", 13)
def batch_above_the_default_limit(talk: Talk, version: int) -> None:
    """Without a setting of the topic the broker's message.max.bytes holds."""
    topic = talk.new_topic()
    produce(talk, version, topic, batch("a" * (1_048_588 - 61)))
    produce(talk, version, topic, batch("a" * (1_048_588 - 61 - 12)))


@case("Produce", 13)
def base_offset_of_the_client(talk: Talk, version: int) -> None:
    """The base offset and leader epoch that a client writes are replaced by the broker."""
    topic = talk.new_topic()
    produce(talk, version, topic, batch("a", base_offset=77, leader_epoch=5))
    fetch(talk, version, topic)


@case("Produce", 13)
def with_a_timeout_of_zero(talk: Talk, version: int) -> None:
    """A timeout of zero is enough for a partition with one replica."""
    produce(talk, version, talk.new_topic(), batch("a"), timeout_ms=0)


@case("Produce", 13)
def with_a_negative_timeout(talk: Talk, version: int) -> None:
    """A negative timeout is not refused."""
    produce(talk, version, talk.new_topic(), batch("a"), timeout_ms=-5)


@case("Produce", 13)
def pipelined(talk: Talk, version: int) -> None:
    """Requests sent without waiting are answered in their order."""
    topic = talk.new_topic()
    finishes = [
        talk.start("Produce", version, **producing(version, topic, batch(value)))
        for value in "abcd"
    ]
    for finish in finishes:
        finish()


@case("Produce", 13)
def more_replicas_wanted_than_there_are(talk: Talk, version: int) -> None:
    """min.insync.replicas above the replicas of the partition refuses acks=all only."""
    topic = talk.new_topic(configs={"min.insync.replicas": "2"})
    produce(talk, version, topic, batch("a"), acks=1)
    produce(talk, version, topic, batch("b"), acks=-1)
    list_offsets(talk, 7, topic.name, -1)


@case("Produce", 13)
def keyed_records(talk: Talk, version: int) -> None:
    """Keys travel unchanged."""
    topic = talk.new_topic()
    produce(talk, version, topic, keyed(("k", "v"), ("k", None)))
    fetch(talk, version, topic)
