"""DescribeTransactions and ListTransactions."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import transaction_case
from tests.golden.talk import Talk
from tests.golden.transaction_cases.producer import (
    ABORT,
    CLASSIC_ADD,
    CLASSIC_END,
    COMMIT,
    NEW_END,
    Producer,
    add,
    describe,
    end_and_settle,
    init,
    newly_opened,
    nobody,
    opened,
)

LIST_VERSIONS = (0, 1, 2)


@transaction_case("DescribeTransactions", 0)
def in_a_classic_life(talk: Talk, version: int) -> None:
    """Empty, ongoing, committed, ongoing, aborted."""
    topic = talk.new_topic(partitions=2)
    producer = init(talk, 4)
    describe(talk, producer)
    for committed in (COMMIT, ABORT):
        add(talk, CLASSIC_ADD, producer, (topic.name, 0), (topic.name, 1))
        describe(talk, producer)
        end_and_settle(talk, CLASSIC_END, producer, committed)
        describe(talk, producer)


@transaction_case("DescribeTransactions", 0)
def in_a_life_of_the_new_protocol(talk: Talk, version: int) -> None:
    """Ongoing, committed, aborted without a transaction."""
    topic = talk.new_topic(partitions=2)
    producer = newly_opened(talk, topic)
    describe(talk, producer)
    after = end_and_settle(talk, NEW_END, producer, COMMIT)
    describe(talk, producer)
    end_and_settle(talk, NEW_END, after, ABORT)
    describe(talk, producer)


@transaction_case("DescribeTransactions", 0)
def of_unknown_ids(talk: Talk, version: int) -> None:
    """An id that nobody initialised, an empty one, none at all, and one twice."""
    producer = init(talk, 4)
    for names in ([talk.name("nobody"), producer.name], [""], [], [producer.name] * 2):
        talk.ask("DescribeTransactions", version, transactional_ids=names)


@transaction_case("DescribeTransactions", 0)
def of_many_ids(talk: Talk, version: int) -> None:
    """Several ids in several states."""
    topic = talk.new_topic()
    one, two = init(talk, 4, talk.name("one")), init(talk, 5, talk.name("two"))
    add(talk, CLASSIC_ADD, one, (topic.name, 0))
    describe(talk, one, two, nobody(talk))


def transactions(talk: Talk, version: int, **fields: Any) -> Any:
    """ListTransactions, without what belongs to other cases."""
    own = talk.name("")

    def shown(answer: dict[str, Any]) -> dict[str, Any]:
        found = [
            each
            for each in answer["transaction_states"]
            if each["transactional_id"].startswith(own)
        ]
        return {**answer, "transaction_states": found}

    return talk.ask("ListTransactions", version, shown=shown, **fields)


def some(talk: Talk) -> tuple[Producer, Producer, Producer]:
    """One without a transaction, one with an open one, and one whose was committed."""
    topic = talk.new_topic()
    empty = init(talk, 4, talk.name("empty"))
    ongoing = init(talk, 4, talk.name("ongoing"))
    add(talk, CLASSIC_ADD, ongoing, (topic.name, 0))
    committed = opened(talk, topic)
    end_and_settle(talk, CLASSIC_END, committed, COMMIT)
    return empty, ongoing, committed


@transaction_case("ListTransactions", *LIST_VERSIONS)
def of_all(talk: Talk, version: int) -> None:
    """Without a filter."""
    some(talk)
    transactions(talk, version)


@transaction_case("ListTransactions", *LIST_VERSIONS)
def by_state(talk: Talk, version: int) -> None:
    """One state, two, one that nobody knows, and one in the wrong case."""
    some(talk)
    for states in (["Ongoing"], ["Empty", "CompleteCommit"], ["Strange"], ["ongoing"]):
        transactions(talk, version, state_filters=states)
    transactions(talk, version, state_filters=["Strange", "Ongoing", "Dead"])


@transaction_case("ListTransactions", *LIST_VERSIONS)
def by_producer_id(talk: Talk, version: int) -> None:
    """Known ids and one of nobody's."""
    empty, ongoing, _ = some(talk)
    transactions(talk, version, producer_id_filters=[ongoing.id])
    transactions(talk, version, producer_id_filters=[ongoing.id, empty.id])
    transactions(talk, version, producer_id_filters=[talk.new_producer_id()])
    transactions(talk, version, producer_id_filters=[ongoing.id], state_filters=["Empty"])


@transaction_case("ListTransactions", 1, 2)
def by_duration(talk: Talk, version: int) -> None:
    """Those that run for longer than this; an id without a transaction runs since ever."""
    some(talk)
    talk.pass_time(20)
    for duration_ms in (-1, -2, 0, 3_600_000):
        transactions(talk, version, duration_filter=duration_ms)


@transaction_case("ListTransactions", 2)
def by_pattern(talk: Talk, version: int) -> None:
    """A regular expression must match the whole id; one that is none is refused."""
    some(talk)
    own = talk.name("")
    for pattern in (own + ".*", own + "(on|em).*", "on", own + "ongoing", "", "(", "[a-"):
        transactions(talk, version, transactional_id_pattern=pattern)
    transactions(talk, version, transactional_id_pattern=own + ".*", state_filters=["Ongoing"])
