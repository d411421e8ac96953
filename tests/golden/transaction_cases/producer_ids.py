"""InitProducerId with a transactional id: new identities, fencing, and expected epochs."""

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
    end,
    end_and_settle,
    init,
    init_again,
    newly_opened,
    nobody,
    opened,
    produce,
    read,
    settle,
)

TIMEOUT_MAX_MS = 900_000
SHORT_MS = 100


@transaction_case("InitProducerId", 0, 1, 2, 3, 4, 5)
def of_an_id_that_comes_back(talk: Talk, version: int) -> None:
    """The same producer id with the next epoch, three times."""
    for _ in range(3):
        describe(talk, init(talk, version))


@transaction_case("InitProducerId", 0, 5)
def of_two_ids(talk: Talk, version: int) -> None:
    """Each transactional id has a producer id of its own."""
    init(talk, version, talk.name("x"))
    init(talk, version, talk.name("y"))


@transaction_case("InitProducerId", 0, 2, 5)
def with_an_empty_id(talk: Talk, version: int) -> None:
    """An empty transactional id is refused, whether or not there are coordinators."""
    init(talk, version, "")


@transaction_case("InitProducerId", 0, 5)
def with_bad_timeouts(talk: Talk, version: int) -> None:
    """Negative, and longer than the broker allows; the longest allowed is accepted."""
    init(talk, version, transaction_timeout_ms=-1)
    init(talk, version, transaction_timeout_ms=TIMEOUT_MAX_MS + 1)
    describe(talk, init(talk, version, transaction_timeout_ms=TIMEOUT_MAX_MS))


@transaction_case("InitProducerId", 0, 5)
def with_another_timeout(talk: Talk, version: int) -> None:
    """The last timeout holds."""
    init(talk, version, transaction_timeout_ms=30_000)
    describe(talk, init(talk, version, transaction_timeout_ms=20_000))


@transaction_case("InitProducerId", 3, 5)
def with_the_expected_epoch(talk: Talk, version: int) -> None:
    """A producer that knows its id and epoch gets the next epoch."""
    producer = init(talk, version)
    init_again(talk, version, init_again(talk, version, producer))


@transaction_case("InitProducerId", 3, 5)
def with_the_expected_epoch_twice(talk: Talk, version: int) -> None:
    """A retry of the last bump gets the same answer."""
    producer = init(talk, version)
    init_again(talk, version, producer)
    describe(talk, init_again(talk, version, producer))


@transaction_case("InitProducerId", 3, 4, 5)
def with_an_older_epoch(talk: Talk, version: int) -> None:
    """Two epochs behind: fenced."""
    producer = init(talk, version)
    init_again(talk, version, init_again(talk, version, producer))
    init_again(talk, version, producer)
    describe(talk, producer)


@transaction_case("InitProducerId", 3, 5)
def with_the_epoch_before_a_fencing(talk: Talk, version: int) -> None:
    """One epoch behind, but the bump was somebody else's: fenced."""
    producer = init(talk, version)
    init(talk, version)
    init_again(talk, version, producer)
    describe(talk, producer)


@transaction_case("InitProducerId", 3, 4, 5)
def with_a_newer_epoch(talk: Talk, version: int) -> None:
    """An epoch that nobody was given."""
    producer = init(talk, version)
    init_again(talk, version, producer.with_epoch(5))
    describe(talk, producer)


@transaction_case("InitProducerId", 3, 4, 5)
def with_another_producer_id(talk: Talk, version: int) -> None:
    """The id of another producer."""
    producer = init(talk, version)
    init_again(talk, version, replace(producer, id=talk.new_producer_id()))
    describe(talk, producer)


@transaction_case("InitProducerId", 3, 5)
def with_an_id_alone(talk: Talk, version: int) -> None:
    """An id without an epoch, and an epoch without an id."""
    producer = init(talk, version)
    init_again(talk, version, producer, producer_epoch=-1)
    init_again(talk, version, producer, producer_id=-1)


@transaction_case("InitProducerId", 3, 5)
def with_an_identity_that_is_not_known(talk: Talk, version: int) -> None:
    """The coordinator may have forgotten an idle id: it begins anew."""
    describe(talk, init_again(talk, version, nobody(talk)))


@transaction_case("InitProducerId", 0, 5)
def with_an_open_transaction(talk: Talk, version: int) -> None:
    """The transaction is aborted; its producer is fenced."""
    topic = talk.new_topic()
    zombie = opened(talk, topic, init_version=version)
    init(talk, version)
    settle(talk, zombie)
    describe(talk, zombie)
    read(talk, topic)
    produce(talk, CLASSIC_PRODUCE, zombie, topic, 1)
    add(talk, CLASSIC_ADD, zombie, (topic.name, 0))
    end(talk, CLASSIC_END, zombie, COMMIT)


@transaction_case("InitProducerId", 5)
def with_an_open_transaction_of_the_new_protocol(talk: Talk, version: int) -> None:
    """The same where Produce has added the partition."""
    topic = talk.new_topic()
    zombie = newly_opened(talk, topic, init_version=version)
    init(talk, version)
    settle(talk, zombie)
    describe(talk, zombie)
    read(talk, topic)
    produce(talk, NEW_PRODUCE, zombie, topic, 1)
    end(talk, NEW_END, zombie, COMMIT)


@transaction_case("InitProducerId", 3, 5)
def with_an_open_transaction_and_the_expected_epoch(talk: Talk, version: int) -> None:
    """The producer itself gives its transaction up."""
    topic = talk.new_topic()
    producer = opened(talk, topic, init_version=version)
    init_again(talk, version, producer)
    settle(talk, producer)
    describe(talk, producer)
    read(talk, topic)


@transaction_case("InitProducerId", 3, 5)
def with_an_open_transaction_and_an_older_epoch(talk: Talk, version: int) -> None:
    """A zombie is refused, but only after the transaction of its successor was aborted."""
    topic = talk.new_topic()
    zombie = init(talk, version)
    init(talk, version)
    opened(talk, topic, init_version=version)
    init_again(talk, version, zombie)
    describe(talk, zombie)


@transaction_case("InitProducerId", 0, 5)
def after_a_classic_commit(talk: Talk, version: int) -> None:
    """The next epoch."""
    topic = talk.new_topic()
    producer = opened(talk, topic)
    end_and_settle(talk, CLASSIC_END, producer, COMMIT)
    describe(talk, init(talk, version))


@transaction_case("InitProducerId", 0, 5)
def after_a_commit_of_the_new_protocol(talk: Talk, version: int) -> None:
    """The commit has bumped the epoch, and this does so again."""
    topic = talk.new_topic()
    producer = newly_opened(talk, topic)
    end_and_settle(talk, NEW_END, producer, COMMIT)
    describe(talk, init(talk, version))


@transaction_case("InitProducerId", 4, 5)
def with_the_epoch_before_the_commit(talk: Talk, version: int) -> None:
    """In the new protocol a commit makes the epoch old; one before is that of a retry."""
    topic = talk.new_topic()
    producer = newly_opened(talk, topic)
    end_and_settle(talk, NEW_END, producer, COMMIT)
    init_again(talk, version, producer)
    describe(talk, producer)


@transaction_case("InitProducerId", 4, 5)
def after_a_transaction_timed_out(talk: Talk, version: int) -> None:
    """The coordinator aborts it with the next epoch; its producer may go on from there."""
    topic = talk.new_topic()
    producer = init(talk, version, transaction_timeout_ms=SHORT_MS)
    add(talk, CLASSIC_ADD, producer, (topic.name, 0))
    _wait_for_abort(talk, producer.name)
    describe(talk, producer)
    end(talk, CLASSIC_END, producer, COMMIT)
    produce(talk, CLASSIC_PRODUCE, producer, topic, 0)
    init_again(talk, version, producer)
    describe(talk, producer)


@transaction_case("InitProducerId", 5)
def after_a_transaction_of_the_new_protocol_timed_out(talk: Talk, version: int) -> None:
    """The same, ended in the new protocol."""
    topic = talk.new_topic()
    producer = init(talk, version, transaction_timeout_ms=SHORT_MS)
    add(talk, CLASSIC_ADD, producer, (topic.name, 0))
    _wait_for_abort(talk, producer.name)
    end(talk, NEW_END, producer, COMMIT)
    end(talk, NEW_END, producer, ABORT)
    produce(talk, NEW_PRODUCE, producer, topic, 0)
    init_again(talk, version, producer)
    describe(talk, producer)


def _wait_for_abort(talk: Talk, name: str) -> None:
    """Until the coordinator has ended the transaction by itself."""
    talk.pass_time(10 * SHORT_MS)

    def is_aborted() -> bool:
        answer = talk.quietly("DescribeTransactions", 0, transactional_ids=[name])
        return bool(answer["transaction_states"][0]["transaction_state"] == "CompleteAbort")

    talk.wait_for(is_aborted, "the abort")
