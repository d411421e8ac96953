"""AddPartitionsToTxn as brokers send it: versions 4 and 5, many transactions, and `verify_only`."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.cases.registry import transaction_case
from tests.golden.talk import Talk
from tests.golden.transaction_cases.producer import (
    BROKER,
    CLASSIC_ADD,
    CLASSIC_END,
    COMMIT,
    NEW_END,
    add,
    add_many,
    describe,
    end_and_settle,
    init,
    newly_opened,
    nobody,
    opened,
    transaction,
)

VERSIONS = (4, 5)


@transaction_case("AddPartitionsToTxn", *VERSIONS)
def by_a_broker(talk: Talk, version: int) -> None:
    """A partition is added, again, and beside another one."""
    topic = talk.new_topic(partitions=2)
    producer = init(talk, 5)
    add_many(talk, version, transaction(producer, (topic.name, 0)))
    add_many(talk, version, transaction(producer, (topic.name, 0)))
    add_many(talk, version, transaction(producer, (topic.name, 0), (topic.name, 1)))
    describe(talk, producer)


@transaction_case("AddPartitionsToTxn", *VERSIONS)
def that_only_verifies(talk: Talk, version: int) -> None:
    """One partition that is in the transaction and one that is not; nothing is added."""
    topic = talk.new_topic(partitions=2)
    producer = init(talk, 4)
    partitions = ((topic.name, 0), (topic.name, 1))
    add_many(talk, version, transaction(producer, *partitions, verify_only=True))
    add(talk, CLASSIC_ADD, producer, (topic.name, 0))
    add_many(talk, version, transaction(producer, *partitions, verify_only=True))
    add_many(talk, version, transaction(producer, (topic.name, 0), verify_only=True))
    describe(talk, producer)


@transaction_case("AddPartitionsToTxn", *VERSIONS)
def that_verifies_for_the_wrong_producer(talk: Talk, version: int) -> None:
    """Older and newer epochs, another producer id, an unknown and an empty transactional id."""
    topic = talk.new_topic()
    init(talk, 4)
    producer = opened(talk, topic)
    unknown = nobody(talk)
    wrong = (
        producer.with_epoch(producer.epoch - 1),
        producer.with_epoch(producer.epoch + 1),
        replace(producer, id=talk.new_producer_id()),
        unknown,
        replace(unknown, name=""),
    )
    for each in wrong:
        add_many(talk, version, transaction(each, (topic.name, 0), verify_only=True))


@transaction_case("AddPartitionsToTxn", *VERSIONS)
def by_a_broker_for_the_wrong_producer(talk: Talk, version: int) -> None:
    """The same without `verify_only`."""
    topic = talk.new_topic()
    init(talk, 4)
    producer = opened(talk, topic)
    unknown = nobody(talk)
    wrong = (
        producer.with_epoch(producer.epoch - 1),
        producer.with_epoch(producer.epoch + 1),
        replace(producer, id=talk.new_producer_id()),
        unknown,
        replace(unknown, name=""),
    )
    for each in wrong:
        add_many(talk, version, transaction(each, (topic.name, 0)))


@transaction_case("AddPartitionsToTxn", *VERSIONS)
def of_many_transactions(talk: Talk, version: int) -> None:
    """Each transaction has its own outcome."""
    topic = talk.new_topic(partitions=2)
    one, two = init(talk, 4, talk.name("one")), init(talk, 4, talk.name("two"))
    add_many(
        talk,
        version,
        transaction(one, (topic.name, 0)),
        transaction(two, (topic.name, 0), (topic.name, 1), verify_only=True),
        transaction(nobody(talk), (topic.name, 0)),
        transaction(init(talk, 4, talk.name("three")).with_epoch(9), (topic.name, 1)),
    )
    describe(talk, one, two)


@transaction_case("AddPartitionsToTxn", *VERSIONS)
def of_no_transactions(talk: Talk, version: int) -> None:
    """A transaction without topics, and no transaction at all, which Kafka never answers."""
    producer = init(talk, 4)
    add_many(talk, version, transaction(producer))
    add_many(talk, version, transaction(producer, verify_only=True))
    describe(talk, producer)
    talk.ask_in_vain("AddPartitionsToTxn", version, on=BROKER, transactions=[])


@transaction_case("AddPartitionsToTxn", *VERSIONS)
def by_a_broker_of_what_does_not_exist(talk: Talk, version: int) -> None:
    """Unknown partitions, to be added and to be verified."""
    topic = talk.new_topic()
    producer = init(talk, 4)
    partitions = ((topic.name, 0), (topic.name, 7), (talk.name("missing"), 0))
    add_many(talk, version, transaction(producer, *partitions))
    add_many(talk, version, transaction(producer, *partitions, verify_only=True))
    describe(talk, producer)


@transaction_case("AddPartitionsToTxn", *VERSIONS)
def by_a_broker_of_an_internal_topic(talk: Talk, version: int) -> None:
    """A group coordinator adds its partition of __consumer_offsets, and verifies it."""
    producer = init(talk, 4)
    offsets = ("__consumer_offsets", 0)
    add_many(talk, version, transaction(producer, offsets, verify_only=True))
    add_many(talk, version, transaction(producer, offsets))
    add_many(talk, version, transaction(producer, offsets, verify_only=True))
    add_many(talk, version, transaction(producer, ("__transaction_state", 0)))
    describe(talk, producer)


@transaction_case("AddPartitionsToTxn", *VERSIONS)
def that_verifies_after_a_classic_end(talk: Talk, version: int) -> None:
    """A transaction that is over has no partitions."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    end_and_settle(talk, CLASSIC_END, producer, COMMIT)
    add_many(talk, version, transaction(producer, (topic.name, 0), verify_only=True))


@transaction_case("AddPartitionsToTxn", *VERSIONS)
def by_a_broker_after_an_end_of_the_new_protocol(talk: Talk, version: int) -> None:
    """The old epoch is refused, the new one begins a transaction."""
    topic = talk.new_topic()
    producer = newly_opened(talk, topic)
    after = end_and_settle(talk, NEW_END, producer, COMMIT)
    add_many(talk, version, transaction(producer, (topic.name, 0), verify_only=True))
    add_many(talk, version, transaction(producer, (topic.name, 0)))
    add_many(talk, version, transaction(after, (topic.name, 0)))
    describe(talk, after)
