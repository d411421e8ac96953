"""Produce by idempotent producers: sequences, duplicates, gaps, epochs, wrap-around."""

from __future__ import annotations

from tests.golden.batches import batch, numbered
from tests.golden.cases.asking import fetch, list_offsets, produce
from tests.golden.cases.registry import case
from tests.golden.talk import Talk, Topic

PID = 4711
EDGES = (3, 13)
SEQUENCE_MAX = 2**31 - 1


def send(
    talk: Talk, topic: Topic, sequence: int, count: int = 1, *, epoch_: int = 0, version: int = 13
) -> None:
    """One batch of the producer that this file is about."""
    produce(talk, version, topic, numbered(PID, epoch_, sequence, count))


@case("Produce", *EDGES)
def sequences_in_order(talk: Talk, version: int) -> None:
    """Batches whose sequences follow each other are appended."""
    topic = talk.new_topic()
    for sequence, count in ((0, 1), (1, 3), (4, 1)):
        send(talk, topic, sequence, count, version=version)
    talk.ask("DescribeProducers", 0, topics=[{"name": topic.name, "partition_indexes": [0]}])


@case("Produce", *EDGES)
def sequence_from_a_real_producer_id(talk: Talk, version: int) -> None:
    """The same with an id that the broker gave out."""
    producer_id = talk.new_producer_id()
    topic = talk.new_topic()
    produce(talk, version, topic, numbered(producer_id, 0, 0))
    fetch(talk, 13, topic)
    talk.ask("DescribeProducers", 0, topics=[{"name": topic.name, "partition_indexes": [0]}])


@case("Produce", *EDGES)
def duplicate(talk: Talk, version: int) -> None:
    """A batch sent twice is appended once and answered with its first offset both times."""
    topic = talk.new_topic()
    send(talk, topic, 0, 2, version=version)
    send(talk, topic, 2, 2, version=version)
    send(talk, topic, 0, 2, version=version)
    send(talk, topic, 2, 2, version=version)
    list_offsets(talk, 7, topic.name, -1)


@case("Produce", *EDGES)
def gap(talk: Talk, version: int) -> None:
    """A sequence that leaves a gap is refused and changes nothing."""
    topic = talk.new_topic()
    send(talk, topic, 0, version=version)
    send(talk, topic, 2, version=version)
    send(talk, topic, 1, version=version)


@case("Produce", *EDGES)
def first_sequence_not_zero(talk: Talk, version: int) -> None:
    """A partition that knows nothing of a producer accepts any first sequence."""
    topic = talk.new_topic()
    send(talk, topic, 10, version=version)
    send(talk, topic, 11, version=version)


@case("Produce", *EDGES)
def older_than_the_five_remembered(talk: Talk, version: int) -> None:
    """The sixth last batch is forgotten: sending it again is out of order."""
    topic = talk.new_topic()
    for sequence in range(6):
        send(talk, topic, sequence, version=version)
    send(talk, topic, 0, version=version)
    send(talk, topic, 1, version=version)
    list_offsets(talk, 7, topic.name, -1)


@case("Produce", *EDGES)
def overlapping(talk: Talk, version: int) -> None:
    """A batch that holds a remembered one and more is not a duplicate."""
    topic = talk.new_topic()
    send(talk, topic, 0, 2, version=version)
    send(talk, topic, 0, 3, version=version)
    send(talk, topic, 1, 1, version=version)
    send(talk, topic, 1, 2, version=version)


@case("Produce", *EDGES)
def same_sequences_other_records(talk: Talk, version: int) -> None:
    """The same range with other bytes is taken for the duplicate it claims to be."""
    topic = talk.new_topic()
    options = {"producer_id": PID, "producer_epoch": 0, "base_sequence": 0}
    produce(talk, version, topic, batch("one", **options))
    produce(talk, version, topic, batch("other", **options))
    fetch(talk, 13, topic)


@case("Produce", 3, 9, 10, 13)
def older_producer_epoch(talk: Talk, version: int) -> None:
    """A producer epoch below the known one is fenced."""
    topic = talk.new_topic()
    send(talk, topic, 0, epoch_=3, version=version)
    send(talk, topic, 1, epoch_=2, version=version)


@case("Produce", *EDGES)
def newer_producer_epoch_at_zero(talk: Talk, version: int) -> None:
    """A newer producer epoch begins at sequence 0."""
    topic = talk.new_topic()
    send(talk, topic, 0, 2, version=version)
    send(talk, topic, 0, 1, epoch_=1, version=version)
    talk.ask("DescribeProducers", 0, topics=[{"name": topic.name, "partition_indexes": [0]}])


@case("Produce", *EDGES)
def newer_producer_epoch_not_at_zero(talk: Talk, version: int) -> None:
    """A newer producer epoch that goes on counting is out of order."""
    topic = talk.new_topic()
    send(talk, topic, 0, version=version)
    send(talk, topic, 1, epoch_=1, version=version)


@case("Produce", *EDGES)
def wrap_around(talk: Talk, version: int) -> None:
    """After the largest sequence comes 0."""
    topic = talk.new_topic()
    send(talk, topic, SEQUENCE_MAX - 1, 2, version=version)
    send(talk, topic, 0, 1, version=version)
    send(talk, topic, SEQUENCE_MAX - 1, 2, version=version)


@case("Produce", 13)
def wrap_around_inside_a_batch(talk: Talk, version: int) -> None:
    """A batch may begin before the largest sequence and end after it."""
    topic = talk.new_topic()
    send(talk, topic, SEQUENCE_MAX, 3)
    send(talk, topic, 2, 1)
    send(talk, topic, SEQUENCE_MAX, 3)
    talk.ask("DescribeProducers", 0, topics=[{"name": topic.name, "partition_indexes": [0]}])


@case("Produce", 13)
def wrap_around_with_a_gap(talk: Talk, version: int) -> None:
    """After the largest sequence 1 is a gap."""
    topic = talk.new_topic()
    send(talk, topic, SEQUENCE_MAX, 1)
    send(talk, topic, 1, 1)


@case("Produce", *EDGES)
def producer_without_a_sequence(talk: Talk, version: int) -> None:
    """A producer id with sequence -1."""
    produce(talk, version, talk.new_topic(), numbered(PID, 0, -1))


@case("Produce", *EDGES)
def producer_with_a_negative_sequence(talk: Talk, version: int) -> None:
    """A producer id with sequence -2."""
    produce(talk, version, talk.new_topic(), numbered(PID, 0, -2))


@case("Produce", 13)
def producer_with_a_negative_producer_epoch(talk: Talk, version: int) -> None:
    """A producer id with producer epoch -1."""
    produce(talk, version, talk.new_topic(), numbered(PID, -1, 0))


@case("Produce", 13)
def sequence_without_a_producer(talk: Talk, version: int) -> None:
    """A sequence without a producer id means nothing."""
    produce(talk, version, talk.new_topic(), numbered(-1, -1, 5))


@case("Produce", 13)
def negative_producer_id(talk: Talk, version: int) -> None:
    """A producer id below -1."""
    produce(talk, version, talk.new_topic(), numbered(-7, 0, 0))


@case("Produce", 13)
def partitions_count_apart(talk: Talk, version: int) -> None:
    """Each partition has its own sequences of a producer."""
    topic = talk.new_topic(partitions=2)
    produce(talk, version, topic, numbered(PID, 0, 0), partition=0)
    produce(talk, version, topic, numbered(PID, 0, 0), partition=1)
    produce(talk, version, topic, numbered(PID, 0, 1), partition=1)
    produce(talk, version, topic, numbered(PID, 0, 2), partition=0)


@case("Produce", 13)
def two_producers(talk: Talk, version: int) -> None:
    """Two producers do not disturb each other."""
    topic = talk.new_topic()
    produce(talk, version, topic, numbered(PID, 0, 0))
    produce(talk, version, topic, numbered(PID + 1, 0, 0))
    produce(talk, version, topic, numbered(PID, 0, 1))
    talk.ask("DescribeProducers", 0, topics=[{"name": topic.name, "partition_indexes": [0]}])


@case("Produce", 13)
def duplicate_with_acks_one(talk: Talk, version: int) -> None:
    """A duplicate is answered as such with acks=1 as well."""
    topic = talk.new_topic()
    produce(talk, version, topic, numbered(PID, 0, 0), acks=1)
    produce(talk, version, topic, numbered(PID, 0, 0), acks=1)


@case("Produce", 13)
def duplicate_after_records_were_deleted(talk: Talk, version: int) -> None:
    """A producer is remembered although its records are gone."""
    topic = talk.new_topic()
    send(talk, topic, 0, 2)
    gone = {"partition_index": 0, "offset": 2}
    topics = [{"name": topic.name, "partitions": [gone]}]
    talk.ask("DeleteRecords", 2, topics=topics, timeout_ms=5000)
    send(talk, topic, 0, 2)
    send(talk, topic, 3, 1)
    send(talk, topic, 2, 1)


@case("Produce", 13)
def gap_with_acks_zero(talk: Talk, version: int) -> None:
    """A gap with acks=0 closes the connection."""
    topic = talk.new_topic()
    send(talk, topic, 0)
    data = {"index": 0, "records": numbered(PID, 0, 5)}
    topics = [{"topic_id": topic.id, "partition_data": [data]}]
    talk.tell("Produce", version, transactional_id=None, acks=0, timeout_ms=1000, topic_data=topics)
