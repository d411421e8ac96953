"""AddPartitionsToTxn as clients send it: versions 0 to 3, one transaction."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.cases.registry import transaction_case
from tests.golden.talk import Talk
from tests.golden.transaction_cases.producer import (
    ABORT,
    CLASSIC_END,
    COMMIT,
    NEW_END,
    Producer,
    add,
    describe,
    end,
    end_and_settle,
    init,
    nobody,
    opened,
)


@transaction_case("AddPartitionsToTxn", 0, 1, 2, 3)
def of_one_partition(talk: Talk, version: int) -> None:
    """It is in the transaction, and is added again without harm."""
    topic = talk.new_topic(partitions=2)
    producer = init(talk, 4)
    add(talk, version, producer, (topic.name, 0))
    add(talk, version, producer, (topic.name, 0))
    add(talk, version, producer, (topic.name, 1), (topic.name, 0))
    describe(talk, producer)


@transaction_case("AddPartitionsToTxn", 0, 3)
def of_two_topics(talk: Talk, version: int) -> None:
    """Several topics in one request."""
    one, two = talk.new_topic("one"), talk.new_topic("two", partitions=2)
    producer = init(talk, 4)
    add(talk, version, producer, (one.name, 0), (two.name, 0), (two.name, 1))
    describe(talk, producer)


@transaction_case("AddPartitionsToTxn", 0, 1, 3)
def of_what_does_not_exist(talk: Talk, version: int) -> None:
    """One unknown partition spoils the request: the others are not attempted."""
    topic = talk.new_topic()
    producer = init(talk, 4)
    add(talk, version, producer, (topic.name, 0), (topic.name, 7), (talk.name("missing"), 0))
    describe(talk, producer)


@transaction_case("AddPartitionsToTxn", 0, 3)
def of_an_internal_topic(talk: Talk, version: int) -> None:
    """Clients have no business in __consumer_offsets and __transaction_state."""
    producer = init(talk, 4)
    add(talk, version, producer, ("__consumer_offsets", 0))
    add(talk, version, producer, ("__transaction_state", 0))
    describe(talk, producer)


@transaction_case("AddPartitionsToTxn", 0, 3)
def of_nothing(talk: Talk, version: int) -> None:
    """No topic, and a topic without partitions."""
    topic = talk.new_topic()
    producer = init(talk, 4)
    add(talk, version, producer)
    talk.ask_patiently(
        "AddPartitionsToTxn",
        version,
        v3_and_below_transactional_id=producer.name,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=[{"name": topic.name, "partitions": []}],
    )
    describe(talk, producer)


@transaction_case("AddPartitionsToTxn", 0, 3)
def of_an_unknown_transactional_id(talk: Talk, version: int) -> None:
    """An id that nobody initialised, and an empty one."""
    topic = talk.new_topic()
    unknown = nobody(talk)
    add(talk, version, unknown, (topic.name, 0))
    add(talk, version, replace(unknown, name=""), (topic.name, 0))


@transaction_case("AddPartitionsToTxn", 1, 2, 3)
def of_an_older_producer_epoch(talk: Talk, version: int) -> None:
    """A producer that was fenced: version 2 has an error code of its own for that."""
    topic = talk.new_topic()
    zombie = init(talk, 4)
    init(talk, 4)
    add(talk, version, zombie, (topic.name, 0))
    describe(talk, zombie)


@transaction_case("AddPartitionsToTxn", 0, 2, 3)
def of_a_newer_producer_epoch(talk: Talk, version: int) -> None:
    """An epoch that nobody was given."""
    topic = talk.new_topic()
    producer = init(talk, 4)
    add(talk, version, producer.with_epoch(3), (topic.name, 0))
    add(talk, version, producer.with_epoch(-1), (topic.name, 0))


@transaction_case("AddPartitionsToTxn", 0, 3)
def of_another_producer_id(talk: Talk, version: int) -> None:
    """The id of another producer, and none at all."""
    topic = talk.new_topic()
    producer = init(talk, 4)
    add(talk, version, replace(producer, id=talk.new_producer_id()), (topic.name, 0))
    add(talk, version, replace(producer, id=-1), (topic.name, 0))


@transaction_case("AddPartitionsToTxn", 0, 3)
def after_a_classic_end(talk: Talk, version: int) -> None:
    """The next transaction has the same epoch."""
    topic = talk.new_topic(partitions=2)
    producer = opened(talk, topic)
    for committed in (COMMIT, ABORT):
        end_and_settle(talk, CLASSIC_END, producer, committed)
        add(talk, version, producer, (topic.name, 1))
        describe(talk, producer)


@transaction_case("AddPartitionsToTxn", 0, 3)
def after_an_end_of_the_new_protocol(talk: Talk, version: int) -> None:
    """The old epoch is fenced, the new one begins the next transaction."""
    topic = talk.new_topic(partitions=2)
    producer = opened(talk, topic)
    after = end_and_settle(talk, NEW_END, producer, COMMIT)
    add(talk, version, producer, (topic.name, 1))
    add(talk, version, after, (topic.name, 1))
    describe(talk, after)
    end(talk, NEW_END, after, ABORT)


@transaction_case("AddPartitionsToTxn", 0, 3)
def of_a_topic_that_is_deleted_meanwhile(talk: Talk, version: int) -> None:
    """Its markers have nowhere to go, so the transaction completes without."""
    topic, other = talk.new_topic(), talk.new_topic("other")
    producer: Producer = init(talk, 4)
    add(talk, version, producer, (topic.name, 0), (other.name, 0))
    talk.quietly("DeleteTopics", 5, topic_names=[topic.name], timeout_ms=30_000)
    talk.wait_until_gone(topic.name)
    add(talk, version, producer, (topic.name, 0))
    end_and_settle(talk, CLASSIC_END, producer, COMMIT)
    describe(talk, producer)
