"""Produce with a transactional id: verified up to version 11, added by itself from 12 on."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.batches import batch, damaged
from tests.golden.cases.asking import PRODUCE_BY_ID_FROM, producing
from tests.golden.cases.registry import transaction_case
from tests.golden.talk import Talk
from tests.golden.transaction_cases.producer import (
    ABORT,
    BUSY_TO_PRODUCERS,
    CLASSIC_ADD,
    CLASSIC_END,
    CLASSIC_PRODUCE,
    COMMIT,
    NEW_END,
    NEW_PRODUCE,
    Producer,
    add,
    describe,
    describe_producers,
    end_and_settle,
    init,
    newly_opened,
    nobody,
    opened,
    produce,
    produce_records,
    read_all,
    written,
)

ADDS_FROM = 12
CLASSIC, NEW = (3, 9, 10, 11), (12, 13)
MANY = (*CLASSIC, *NEW)


def begin(talk: Talk, version: int, topic: str, *, partition: int = 0) -> Producer:
    """A producer whose partition is added, where that has to be done."""
    producer = init(talk, 5)
    if version < ADDS_FROM:
        add(talk, CLASSIC_ADD, producer, (topic, partition))
    return producer


def end_version(version: int) -> int:
    return NEW_END if version >= ADDS_FROM else CLASSIC_END


@transaction_case("Produce", 3, 5, 8, 9, 10, 11, 12, 13)
def in_a_transaction(talk: Talk, version: int) -> None:
    """Two batches, and the first one again."""
    topic = talk.new_topic()
    producer = begin(talk, version, topic.name)
    produce(talk, version, producer, topic, 0, count=2)
    produce(talk, version, producer, topic, 2)
    produce(talk, version, producer, topic, 0, count=2)
    describe(talk, producer)
    describe_producers(talk, topic)


@transaction_case("Produce", *MANY)
def to_a_partition_that_was_not_added(talk: Talk, version: int) -> None:
    """The classic protocol refuses it, the new one adds it."""
    topic = talk.new_topic(partitions=2)
    producer = begin(talk, version, topic.name)
    produce(talk, version, producer, topic, 0, partition=1)
    describe(talk, producer)
    describe_producers(talk, topic, 1)


@transaction_case("Produce", *MANY)
def outside_of_a_transaction(talk: Talk, version: int) -> None:
    """Nothing was added since the id was initialised."""
    topic = talk.new_topic()
    producer = init(talk, 5)
    produce(talk, version, producer, topic, 0)
    describe(talk, producer)


@transaction_case("Produce", 3, 11, 12, 13)
def of_an_older_producer_epoch(talk: Talk, version: int) -> None:
    """A zombie, before and after its successor has written."""
    topic = talk.new_topic()
    zombie = begin(talk, version, topic.name)
    produce(talk, version, zombie, topic, 0)
    producer = begin(talk, version, topic.name)
    produce(talk, version, zombie, topic, 1)
    produce(talk, version, producer, topic, 0)
    produce(talk, version, zombie, topic, 1)
    describe_producers(talk, topic)


@transaction_case("Produce", 3, 11, 12, 13)
def of_a_newer_producer_epoch(talk: Talk, version: int) -> None:
    """An epoch that nobody was given."""
    topic = talk.new_topic()
    producer = begin(talk, version, topic.name)
    produce(talk, version, producer.with_epoch(9), topic, 0)
    describe_producers(talk, topic)


@transaction_case("Produce", 3, 11, 12, 13)
def of_another_producer_id(talk: Talk, version: int) -> None:
    """The transactional id of one, the producer id of another."""
    topic = talk.new_topic()
    producer = begin(talk, version, topic.name)
    produce(talk, version, replace(producer, id=talk.new_producer_id()), topic, 0)
    describe(talk, producer)


@transaction_case("Produce", 3, 11, 12, 13)
def of_an_unknown_transactional_id(talk: Talk, version: int) -> None:
    """An id that nobody initialised, and an empty one."""
    topic = talk.new_topic()
    unknown = nobody(talk)
    produce(talk, version, unknown, topic, 0)
    produce(talk, version, replace(unknown, name=""), topic, 0)


@transaction_case("Produce", 3, 11, 12, 13)
def of_a_transactional_batch_without_a_transactional_id(talk: Talk, version: int) -> None:
    """The batch says that it is transactional, the request does not."""
    topic = talk.new_topic()
    producer = begin(talk, version, topic.name)
    produce_records(talk, version, topic, written(talk, producer, 0))
    describe_producers(talk, topic)


@transaction_case("Produce", 3, 11, 12, 13)
def of_a_plain_batch_with_a_transactional_id(talk: Talk, version: int) -> None:
    """The other way round: first with a producer id, then without."""
    topic = talk.new_topic()
    producer = begin(talk, version, topic.name)
    plain = written(talk, producer, 0, transactional=False)
    produce_records(talk, version, topic, plain, transactional_id=producer.name)
    anonymous = batch("anonymous", timestamp_ms=talk.clock_ms())
    produce_records(talk, version, topic, anonymous, transactional_id=producer.name)
    describe(talk, producer)
    describe_producers(talk, topic)


@transaction_case("Produce", 3, 13)
def of_a_plain_batch_in_a_transaction(talk: Talk, version: int) -> None:
    """A producer with an open transaction writes a batch that is not part of it."""
    topic = talk.new_topic()
    producer = begin(talk, version, topic.name)
    produce(talk, version, producer, topic, 0)
    produce_records(talk, version, topic, written(talk, producer, 1, transactional=False))
    read_all(talk, topic)


@transaction_case("Produce", 3, 11, 12, 13)
def with_a_gap_in_the_sequence(talk: Talk, version: int) -> None:
    """At the beginning, where the partition knows nothing, and then within."""
    topic = talk.new_topic()
    producer = begin(talk, version, topic.name)
    produce(talk, version, producer, topic, 5)
    produce(talk, version, producer, topic, 0)
    produce(talk, version, producer, topic, 2)
    describe_producers(talk, topic)


@transaction_case("Produce", 3, 9, 11)
def after_a_classic_end(talk: Talk, version: int) -> None:
    """A late batch with the epoch of the last transaction, then one that was added anew."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    end_and_settle(talk, CLASSIC_END, producer, COMMIT)
    produce(talk, version, producer, topic, 1)
    add(talk, CLASSIC_ADD, producer, (topic.name, 0))
    produce(talk, version, producer, topic, 1)
    describe_producers(talk, topic)


@transaction_case("Produce", 12, 13)
def after_an_end_of_the_new_protocol(talk: Talk, version: int) -> None:
    """A late batch with the old epoch; the new one begins at sequence 0."""
    topic = talk.new_topic()
    producer = newly_opened(talk, topic)
    after = end_and_settle(talk, NEW_END, producer, COMMIT)
    produce(talk, version, producer, topic, 1)
    produce(talk, version, after, topic, 1)
    produce(talk, version, after, topic, 0)
    describe(talk, after)
    describe_producers(talk, topic)


@transaction_case("Produce", 11, 13)
def again_after_the_end(talk: Talk, version: int) -> None:
    """A retry of a batch that was written before the commit: a duplicate is recognised."""
    topic = talk.new_topic()
    producer = begin(talk, version, topic.name)
    produce(talk, version, producer, topic, 0)
    end_and_settle(talk, end_version(version), producer, COMMIT)
    produce(talk, version, producer, topic, 0)
    describe(talk, producer)
    read_all(talk, topic)


@transaction_case("Produce", 3, 11, 12, 13)
def to_many_partitions_of_which_one_is_wrong(talk: Talk, version: int) -> None:
    """One partition added, one not, one that does not exist."""
    topic = talk.new_topic(partitions=2)
    producer = begin(talk, version, topic.name)
    fields = producing(version, topic, b"", transactional_id=producer.name)
    records = written(talk, producer, 0)
    data = [{"index": index, "records": records} for index in (0, 1, 7)]
    fields["topic_data"][0]["partition_data"] = data
    talk.ask_patiently("Produce", version, busy=BUSY_TO_PRODUCERS, **fields)
    describe(talk, producer)


@transaction_case("Produce", 11, 13)
def of_two_producers_in_one_request(talk: Talk, version: int) -> None:
    """A transactional request with batches of two producer ids."""
    topic = talk.new_topic(partitions=2)
    producer = begin(talk, version, topic.name)
    fields = producing(version, topic, b"", transactional_id=producer.name)
    other = replace(producer, id=talk.new_producer_id())
    fields["topic_data"][0]["partition_data"] = [
        {"index": index, "records": written(talk, each, 0)}
        for index, each in enumerate((producer, other))
    ]
    talk.ask_patiently("Produce", version, busy=BUSY_TO_PRODUCERS, **fields)
    describe(talk, producer)


@transaction_case("Produce", 11, 13)
def of_a_marker(talk: Talk, version: int) -> None:
    """Only coordinators write control batches."""
    topic = talk.new_topic()
    producer = begin(talk, version, topic.name)
    records = written(talk, producer, 0, control=True)
    produce_records(talk, version, topic, records, transactional_id=producer.name)
    describe_producers(talk, topic)


@transaction_case("Produce", 11, 13)
def of_a_damaged_batch(talk: Talk, version: int) -> None:
    """A wrong CRC is found before or after the partition is added."""
    topic = talk.new_topic()
    producer = begin(talk, version, topic.name)
    records = damaged(written(talk, producer, 0), crc=1)
    produce_records(talk, version, topic, records, transactional_id=producer.name)
    describe(talk, producer)


@transaction_case("Produce", 11, 13)
def with_acks_of_the_leader(talk: Talk, version: int) -> None:
    """Transactions want acks=all, but the broker does not insist."""
    topic = talk.new_topic()
    producer = begin(talk, version, topic.name)
    produce(talk, version, producer, topic, 0, acks=1)
    describe(talk, producer)


@transaction_case("Produce", 11, 13)
def to_a_topic_that_does_not_exist(talk: Talk, version: int) -> None:
    """Nothing to add."""
    topic = talk.new_topic()
    producer = begin(talk, version, topic.name)
    missing = replace(topic, name=talk.name("missing"), id=bytes(range(1, 17)))
    produce(talk, version, producer, missing, 0)
    describe(talk, producer)


@transaction_case("Produce", 13)
def of_both_protocols_in_one_transaction(talk: Talk, version: int) -> None:
    """A partition that is added by the client, and one by Produce; a classic end."""
    assert version >= PRODUCE_BY_ID_FROM
    topic = talk.new_topic(partitions=2)
    producer = opened(talk, topic)
    produce(talk, NEW_PRODUCE, producer, topic, 0, partition=1)
    produce(talk, CLASSIC_PRODUCE, producer, topic, 1, partition=1)
    describe(talk, producer)
    end_and_settle(talk, CLASSIC_END, producer, ABORT)
    produce(talk, version, producer, topic, 2, partition=1)
    describe(talk, producer)
