"""Fetch, ListOffsets and DescribeProducers where transactions are open, committed or aborted."""

from __future__ import annotations

from typing import Any

from tests.golden.batches import OLD_TIME_MS, batch
from tests.golden.cases.asking import fetching, list_offsets
from tests.golden.cases.registry import transaction_case
from tests.golden.talk import Talk, Topic
from tests.golden.transaction_cases.producer import (
    ABORT,
    CLASSIC_ADD,
    CLASSIC_END,
    CLASSIC_PRODUCE,
    COMMIT,
    NEW_END,
    NEW_PRODUCE,
    READ_COMMITTED,
    Producer,
    add,
    describe_producers,
    end_and_settle,
    fill,
    init,
    newly_opened,
    opened,
    produce,
    read,
    read_all,
)

LATEST, EARLIEST, LARGEST_TIMESTAMP = -1, -2, -3
FETCHES = (4, 5, 12, 13, 18)


def interleaved(talk: Talk, topic: Topic) -> tuple[Producer, Producer]:
    """Offsets 0 of one, 1 of two, 2 of none, 3 abort of one, 4 of two, 5 commit of two."""
    one, two = init(talk, 4, talk.name("one")), init(talk, 4, talk.name("two"))
    for producer in (one, two):
        add(talk, CLASSIC_ADD, producer, (topic.name, 0))
        produce(talk, CLASSIC_PRODUCE, producer, topic, 0)
    fill(talk, topic, "plain")
    end_and_settle(talk, CLASSIC_END, one, ABORT)
    produce(talk, CLASSIC_PRODUCE, two, topic, 1)
    return one, two


@transaction_case("Fetch", *FETCHES)
def of_committed_records_while_one_is_open(talk: Talk, version: int) -> None:
    """Nothing behind the last stable offset is given out; readers of all get everything."""
    topic = talk.new_topic()
    fill(talk, topic, "before")
    opened(talk, topic)
    fill(talk, topic, "behind")
    read(talk, topic, version=version)
    read(talk, topic, version=version, offset=1)
    read_all(talk, topic, version=version)


@transaction_case("Fetch", *FETCHES)
def of_committed_records_after_an_abort(talk: Talk, version: int) -> None:
    """Aborted transactions are named to readers of committed records, and only to them."""
    topic = talk.new_topic()
    fill(talk, topic, "before")
    producer = opened(talk, topic)
    end_and_settle(talk, CLASSIC_END, producer, ABORT)
    fill(talk, topic, "behind")
    read(talk, topic, version=version)
    read_all(talk, topic, version=version)


@transaction_case("Fetch", 4, 17)
def of_committed_records_of_two_producers(talk: Talk, version: int) -> None:
    """One aborted while the other goes on: its end lies behind the last stable offset."""
    topic = talk.new_topic()
    _, two = interleaved(talk, topic)
    read(talk, topic, version=version)
    end_and_settle(talk, CLASSIC_END, two, COMMIT)
    for offset in (0, 1, 3, 4):
        read(talk, topic, version=version, offset=offset)


@transaction_case("Fetch", 17)
def of_committed_records_in_small_pieces(talk: Talk, version: int) -> None:
    """Only those aborted transactions are named that overlap with what is read."""
    topic = talk.new_topic()
    producer = init(talk, 5)
    for committed in (ABORT, COMMIT, ABORT):
        produce(talk, NEW_PRODUCE, producer, topic, 0, count=2)
        producer = end_and_settle(talk, NEW_END, producer, committed)
    for offset in range(10):
        read(talk, topic, version=version, offset=offset, partition_max_bytes=1)


@transaction_case("Fetch", 17)
def of_committed_records_at_the_end(talk: Talk, version: int) -> None:
    """At the last stable offset, at the high watermark, and beyond."""
    topic = talk.new_topic()
    opened(talk, topic)
    fill(talk, topic, "behind")
    for offset in (0, 1, 2, 3):
        read(talk, topic, version=version, offset=offset)


@transaction_case("Fetch", 17)
def of_committed_records_in_many_partitions(talk: Talk, version: int) -> None:
    """One transaction over two partitions, and a third one that has nothing of it."""
    topic = talk.new_topic(partitions=3)
    producer = newly_opened(talk, topic)
    produce(talk, NEW_PRODUCE, producer, topic, 0, partition=1)
    fill(talk, topic, "plain", partition=2)
    for partition in (0, 1, 2):
        read(talk, topic, version=version, partition=partition)
    end_and_settle(talk, NEW_END, producer, ABORT)
    for partition in (0, 1, 2):
        read(talk, topic, version=version, partition=partition)


@transaction_case("Fetch", 4, 17)
def of_committed_records_that_waits(talk: Talk, version: int) -> None:
    """A record that comes does not end the wait of a reader of committed ones; its commit does."""
    topic = talk.new_topic()
    producer = init(talk, 5)
    committed = {"isolation_level": READ_COMMITTED}
    wait = {"max_wait_ms": 60_000, "min_bytes": 1}
    finish = talk.start(
        "Fetch", version, on="reader", **fetching(version, topic, 0, request=committed, **wait)
    )
    produce(talk, NEW_PRODUCE, producer, topic, 0)
    end_and_settle(talk, NEW_END, producer, COMMIT)
    finish()


@transaction_case("Fetch", 17)
def of_committed_records_that_are_old(talk: Talk, version: int) -> None:
    """The marker is of now: it begins another segment, and a fetch reads one segment."""
    topic = talk.new_topic()
    producer = opened(talk, topic, timestamp_ms=OLD_TIME_MS)
    end_and_settle(talk, CLASSIC_END, producer, ABORT)
    for offset in (0, 1):
        read(talk, topic, version=version, offset=offset)


@transaction_case("Fetch", 17)
def of_committed_records_after_records_were_deleted(talk: Talk, version: int) -> None:
    """Records of an aborted transaction that are gone."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    produce(talk, CLASSIC_PRODUCE, producer, topic, 1)
    end_and_settle(talk, CLASSIC_END, producer, ABORT)
    delete_before(talk, topic, 1)
    read(talk, topic, version=version, offset=1)


def delete_before(talk: Talk, topic: Topic, offset: int) -> Any:
    partitions = [{"partition_index": 0, "offset": offset}]
    topics = [{"name": topic.name, "partitions": partitions}]
    return talk.ask("DeleteRecords", 2, topics=topics, timeout_ms=30_000)


@transaction_case("DeleteRecords", 2)
def behind_the_last_stable_offset(talk: Talk, version: int) -> None:
    """An open transaction does not keep its records."""
    topic = talk.new_topic()
    opened(talk, topic)
    fill(talk, topic, "behind")
    delete_before(talk, topic, 2)
    read(talk, topic, offset=2)
    read(talk, topic, offset=0)
    list_offsets(talk, 7, topic.name, LATEST, request={"isolation_level": READ_COMMITTED})
    describe_producers(talk, topic)


@transaction_case("ListOffsets", 2, 3, 4, 7, 11)
def of_committed_records(talk: Talk, version: int) -> None:
    """The latest is the last stable offset while a transaction is open."""
    topic = talk.new_topic()
    fill(talk, topic, "before")
    producer = opened(talk, topic)
    committed = {"isolation_level": READ_COMMITTED}
    for timestamp in (LATEST, EARLIEST):
        list_offsets(talk, version, topic.name, timestamp, request=committed)
        list_offsets(talk, version, topic.name, timestamp)
    end_and_settle(talk, CLASSIC_END, producer, ABORT)
    list_offsets(talk, version, topic.name, LATEST, request=committed)


@transaction_case("ListOffsets", 7, 11)
def of_committed_records_by_time(talk: Talk, version: int) -> None:
    """Timestamps behind the last stable offset are not found, and the largest one is."""
    topic = talk.new_topic()
    talk.fill(topic, batch("before", timestamp_ms=1_600_000_000_000))
    opened(talk, topic, timestamp_ms=1_600_000_000_000)
    talk.fill(topic, batch("behind", timestamp_ms=1_600_000_100_000))
    committed = {"isolation_level": READ_COMMITTED}
    for timestamp in (1_600_000_000_000, 1_600_000_050_000, LARGEST_TIMESTAMP):
        list_offsets(talk, version, topic.name, timestamp, request=committed)
        list_offsets(talk, version, topic.name, timestamp)


@transaction_case("DescribeProducers", 0)
def in_classic_transactions(talk: Talk, version: int) -> None:
    """Added but not written, open, with more records, ended, open again."""
    topic = talk.new_topic()
    producer = init(talk, 4)
    add(talk, CLASSIC_ADD, producer, (topic.name, 0))
    describe_producers(talk, topic)
    produce(talk, CLASSIC_PRODUCE, producer, topic, 0, count=2)
    produce(talk, CLASSIC_PRODUCE, producer, topic, 2)
    describe_producers(talk, topic)
    end_and_settle(talk, CLASSIC_END, producer, COMMIT)
    describe_producers(talk, topic)
    add(talk, CLASSIC_ADD, producer, (topic.name, 0))
    produce(talk, CLASSIC_PRODUCE, producer, topic, 3)
    describe_producers(talk, topic)


@transaction_case("DescribeProducers", 0)
def in_transactions_of_the_new_protocol(talk: Talk, version: int) -> None:
    """The marker carries the next epoch."""
    topic = talk.new_topic()
    producer = newly_opened(talk, topic)
    describe_producers(talk, topic)
    after = end_and_settle(talk, NEW_END, producer, ABORT)
    describe_producers(talk, topic)
    produce(talk, NEW_PRODUCE, after, topic, 0)
    describe_producers(talk, topic)


@transaction_case("DescribeProducers", 0)
def of_two_transactions_at_once(talk: Talk, version: int) -> None:
    """Each has its own first offset."""
    topic = talk.new_topic()
    _, two = interleaved(talk, topic)
    describe_producers(talk, topic)
    end_and_settle(talk, CLASSIC_END, two, COMMIT)
    describe_producers(talk, topic)
