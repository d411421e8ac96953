"""Whole lives of transactional producers, in both protocols, from the first request to readers."""

from __future__ import annotations

from tests.golden.cases.asking import list_offsets
from tests.golden.cases.registry import transaction_case
from tests.golden.group_cases.members import ready
from tests.golden.talk import Talk
from tests.golden.transaction_cases.producer import (
    ABORT,
    CLASSIC_ADD,
    CLASSIC_PRODUCE,
    COMMIT,
    NEW_END,
    NEW_PRODUCE,
    READ_COMMITTED,
    add,
    add_group,
    describe,
    describe_producers,
    end,
    end_and_settle,
    init,
    produce,
    read,
    read_all,
    settle,
)
from tests.golden.transaction_cases.txn_offsets import fetch, of, txn_commit

TRANSACTION = 1
LATEST = -1


@transaction_case("EndTxn", 0, 2, 4)
def of_a_classic_life(talk: Talk, version: int) -> None:
    """Find, init, add, produce, commit, again with an abort, read."""
    topic = talk.new_topic(partitions=2)
    talk.ask("FindCoordinator", 3, key=talk.name("x"), key_type=TRANSACTION)
    producer = init(talk, min(version, 4))
    for sequence, committed in enumerate((COMMIT, ABORT, COMMIT)):
        add(talk, min(version, 3), producer, (topic.name, 0), (topic.name, 1))
        for partition in (0, 1):
            produce(talk, CLASSIC_PRODUCE, producer, topic, sequence, partition=partition)
        describe(talk, producer)
        end_and_settle(talk, version, producer, committed)
        describe(talk, producer)
    for partition in (0, 1):
        read(talk, topic, partition=partition)
    read_all(talk, topic)
    describe_producers(talk, topic, 0, 1)


@transaction_case("EndTxn", 5)
def of_a_life_in_the_new_protocol(talk: Talk, version: int) -> None:
    """Init, produce, commit, again with an abort, read: every end has another epoch."""
    topic = talk.new_topic(partitions=2)
    producer = init(talk, 5)
    for committed in (COMMIT, ABORT, COMMIT):
        for partition in (0, 1):
            produce(talk, NEW_PRODUCE, producer, topic, 0, partition=partition)
        describe(talk, producer)
        producer = end_and_settle(talk, version, producer, committed)
        describe(talk, producer)
    for partition in (0, 1):
        read(talk, topic, partition=partition)
    read_all(talk, topic)
    describe_producers(talk, topic, 0, 1)


@transaction_case("EndTxn", 4, 5)
def of_consume_transform_produce(talk: Talk, version: int) -> None:
    """Records and offsets in one transaction: a commit, then an abort."""
    group, source, sink = (
        ready(talk),
        talk.new_topic("source", partitions=2),
        talk.new_topic("sink"),
    )
    producer = init(talk, 5)
    classic = version < NEW_END
    for number, committed in enumerate((COMMIT, ABORT)):
        if classic:
            add(talk, CLASSIC_ADD, producer, (sink.name, 0))
            produce(talk, CLASSIC_PRODUCE, producer, sink, number)
            add_group(talk, 4, producer, group)
            txn_commit(talk, 4, producer, group, of(source.name, 10 + number))
        else:
            produce(talk, NEW_PRODUCE, producer, sink, 0)
            txn_commit(talk, 5, producer, group, of(source.name, 10 + number))
        describe(talk, producer)
        producer = end_and_settle(talk, version, producer, committed)
        fetch(talk, 9, group, source, stable_only=True)
        read(talk, sink)


@transaction_case("EndTxn", 4, 5)
def of_a_zombie(talk: Talk, version: int) -> None:
    """A successor takes over in the middle; all that the zombie tries is refused."""
    group, topic = ready(talk), talk.new_topic()
    classic = version < NEW_END
    produce_version = CLASSIC_PRODUCE if classic else NEW_PRODUCE
    zombie = init(talk, 5)
    if classic:
        add(talk, CLASSIC_ADD, zombie, (topic.name, 0))
    produce(talk, produce_version, zombie, topic, 0)
    producer = init(talk, 5)
    settle(talk, producer)
    if classic:
        add(talk, CLASSIC_ADD, producer, (topic.name, 0))
    produce(talk, produce_version, producer, topic, 0)
    produce(talk, produce_version, zombie, topic, 1)
    add(talk, CLASSIC_ADD, zombie, (topic.name, 0))
    add_group(talk, 4, zombie, group)
    txn_commit(talk, 4 if classic else 5, zombie, group, of(topic.name))
    end(talk, version, zombie, COMMIT)
    end_and_settle(talk, version, producer, COMMIT)
    end(talk, version, zombie, ABORT)
    read(talk, topic)
    list_offsets(talk, 7, topic.name, LATEST, request={"isolation_level": READ_COMMITTED})


@transaction_case("EndTxn", 4, 5)
def of_two_producers_and_one_partition(talk: Talk, version: int) -> None:
    """The first open transaction holds back the second, though that one is committed."""
    topic = talk.new_topic()
    classic = version < NEW_END
    one, two = init(talk, 5, talk.name("one")), init(talk, 5, talk.name("two"))
    for producer in (one, two):
        if classic:
            add(talk, CLASSIC_ADD, producer, (topic.name, 0))
        produce(talk, CLASSIC_PRODUCE if classic else NEW_PRODUCE, producer, topic, 0)
    end_and_settle(talk, version, two, COMMIT)
    read(talk, topic)
    list_offsets(talk, 7, topic.name, LATEST, request={"isolation_level": READ_COMMITTED})
    end_and_settle(talk, version, one, ABORT)
    read(talk, topic)
    describe_producers(talk, topic)
