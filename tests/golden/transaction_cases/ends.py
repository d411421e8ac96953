"""EndTxn: the classic protocol up to version 4, and version 5, which bumps the epoch."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.cases.registry import transaction_case
from tests.golden.talk import Talk
from tests.golden.transaction_cases.producer import (
    ABORT,
    CLASSIC_ADD,
    CLASSIC_END,
    CLASSIC_PRODUCE,
    COMMIT,
    NEW_END,
    NEW_PRODUCE,
    add,
    describe,
    describe_producers,
    end,
    end_and_settle,
    init,
    newly_opened,
    nobody,
    opened,
    produce,
    read,
    settle,
)

VERSIONS = (0, 1, 2, 3, 4, 5)


@transaction_case("EndTxn", *VERSIONS)
def with_a_commit(talk: Talk, version: int) -> None:
    """The record can be read, and the marker behind it."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    read(talk, topic)
    end_and_settle(talk, version, producer, COMMIT)
    describe(talk, producer)
    read(talk, topic)
    describe_producers(talk, topic)


@transaction_case("EndTxn", *VERSIONS)
def with_an_abort(talk: Talk, version: int) -> None:
    """Readers of committed records are told to skip the transaction."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    end_and_settle(talk, version, producer, ABORT)
    describe(talk, producer)
    read(talk, topic)
    describe_producers(talk, topic)


@transaction_case("EndTxn", 0, 4, 5)
def with_a_commit_of_nothing(talk: Talk, version: int) -> None:
    """No transaction was ever open."""
    producer = init(talk, 5)
    end(talk, version, producer, COMMIT)
    describe(talk, producer)


@transaction_case("EndTxn", 0, 4, 5)
def with_an_abort_of_nothing(talk: Talk, version: int) -> None:
    """No transaction was ever open: version 5 bumps the epoch all the same."""
    producer = init(talk, 5)
    after = end_and_settle(talk, version, producer, ABORT)
    describe(talk, producer)
    end_and_settle(talk, version, after, ABORT)
    describe(talk, producer)


@transaction_case("EndTxn", 0, 4, 5)
def with_the_same_commit_twice(talk: Talk, version: int) -> None:
    """A retry gets the same answer."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    end_and_settle(talk, version, producer, COMMIT)
    end(talk, version, producer, COMMIT)
    end(talk, version, producer, COMMIT)
    describe(talk, producer)
    read(talk, topic)


@transaction_case("EndTxn", 0, 4, 5)
def with_the_same_abort_twice(talk: Talk, version: int) -> None:
    """A retry gets the same answer."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    end_and_settle(talk, version, producer, ABORT)
    end_and_settle(talk, version, producer, ABORT)
    end_and_settle(talk, version, producer, ABORT)
    describe(talk, producer)
    read(talk, topic)


@transaction_case("EndTxn", 0, 4, 5)
def with_an_abort_after_the_commit(talk: Talk, version: int) -> None:
    """What is decided stays so: the other word comes too late."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    end_and_settle(talk, version, producer, COMMIT)
    end_and_settle(talk, version, producer, ABORT)
    describe(talk, producer)


@transaction_case("EndTxn", 0, 4, 5)
def with_a_commit_after_the_abort(talk: Talk, version: int) -> None:
    """The other way round."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    end_and_settle(talk, version, producer, ABORT)
    end_and_settle(talk, version, producer, COMMIT)
    describe(talk, producer)


@transaction_case("EndTxn", 5)
def with_the_next_epoch_after_the_end(talk: Talk, version: int) -> None:
    """Commit and abort of nothing by the epoch that the last end gave."""
    topic = talk.new_topic()
    producer = newly_opened(talk, topic)
    after = end_and_settle(talk, version, producer, COMMIT)
    end(talk, version, after, COMMIT)
    last = end_and_settle(talk, version, after, ABORT)
    end(talk, version, producer, COMMIT)
    end_and_settle(talk, version, after, ABORT)
    end(talk, version, last, COMMIT)
    describe(talk, producer)


@transaction_case("EndTxn", 4, 5)
def by_a_late_retry_during_the_next_transaction(talk: Talk, version: int) -> None:
    """The retry of the first end arrives when the second transaction is open.

    In the classic protocol it ends that one; the new one knows it by its epoch."""
    topic = talk.new_topic()
    classic = version < NEW_END
    producer = opened(talk, topic) if classic else newly_opened(talk, topic)
    after = end_and_settle(talk, version, producer, COMMIT)
    if classic:
        add(talk, CLASSIC_ADD, after, (topic.name, 0))
        produce(talk, CLASSIC_PRODUCE, after, topic, 1)
    else:
        produce(talk, NEW_PRODUCE, after, topic, 0)
    end(talk, version, producer, COMMIT)
    if classic:
        settle(talk, producer)
    describe(talk, producer)
    end_and_settle(talk, version, after, ABORT)
    describe(talk, producer)
    read(talk, topic)


@transaction_case("EndTxn", 1, 2, 4, 5)
def of_an_older_producer_epoch(talk: Talk, version: int) -> None:
    """A zombie cannot end the transaction of its successor."""
    topic = talk.new_topic()
    zombie = init(talk, 5)
    producer = opened(talk, topic)
    end(talk, version, zombie, COMMIT)
    end(talk, version, zombie, ABORT)
    describe(talk, producer)


@transaction_case("EndTxn", 0, 4, 5)
def of_an_epoch_two_behind(talk: Talk, version: int) -> None:
    """Not even a retry has it."""
    topic = talk.new_topic()
    zombie = init(talk, 5)
    init(talk, 5)
    producer = opened(talk, topic)
    end(talk, version, zombie, COMMIT)
    end(talk, version, zombie, ABORT)
    describe(talk, producer)


@transaction_case("EndTxn", 0, 4, 5)
def of_a_newer_producer_epoch(talk: Talk, version: int) -> None:
    """An epoch that nobody was given, and none."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    end(talk, version, producer.with_epoch(9), COMMIT)
    end(talk, version, producer.with_epoch(-1), COMMIT)
    describe(talk, producer)


@transaction_case("EndTxn", 0, 4, 5)
def of_another_producer_id(talk: Talk, version: int) -> None:
    """The id of another producer, and none."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    end(talk, version, replace(producer, id=talk.new_producer_id()), COMMIT)
    end(talk, version, replace(producer, id=-1), COMMIT)
    describe(talk, producer)


@transaction_case("EndTxn", 0, 4, 5)
def of_an_unknown_transactional_id(talk: Talk, version: int) -> None:
    """An id that nobody initialised, and an empty one."""
    unknown = nobody(talk)
    end(talk, version, unknown, COMMIT)
    end(talk, version, replace(unknown, name=""), ABORT)


@transaction_case("EndTxn", 4, 5)
def without_a_record(talk: Talk, version: int) -> None:
    """A partition that was added gets its marker, though nothing was written."""
    topic = talk.new_topic()
    producer = init(talk, 5)
    add(talk, CLASSIC_ADD, producer, (topic.name, 0))
    end_and_settle(talk, version, producer, ABORT)
    read(talk, topic)
    describe_producers(talk, topic)


@transaction_case("EndTxn", 4, 5)
def after_a_fencing(talk: Talk, version: int) -> None:
    """The zombie ends what InitProducerId has aborted already."""
    topic = talk.new_topic()
    zombie = opened(talk, topic)
    init(talk, 5)
    end(talk, version, zombie, ABORT)
    end(talk, version, zombie, COMMIT)
    describe(talk, zombie)


@transaction_case("EndTxn", 5)
def of_the_classic_protocol_then_of_the_new(talk: Talk, version: int) -> None:
    """A producer that changes its protocol between two transactions, and back."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    end_and_settle(talk, CLASSIC_END, producer, COMMIT)
    produce(talk, NEW_PRODUCE, producer, topic, 1)
    after = end_and_settle(talk, version, producer, COMMIT)
    add(talk, CLASSIC_ADD, after, (topic.name, 0))
    produce(talk, CLASSIC_PRODUCE, after, topic, 0)
    end_and_settle(talk, CLASSIC_END, after, ABORT)
    describe(talk, after)
    read(talk, topic)
