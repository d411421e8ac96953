"""AddOffsetsToTxn: a group's partition of __consumer_offsets becomes part of a transaction."""

from __future__ import annotations

from dataclasses import replace

from tests.golden.cases.registry import transaction_case
from tests.golden.group_cases.members import ready
from tests.golden.talk import Talk
from tests.golden.transaction_cases.producer import (
    ABORT,
    CLASSIC_END,
    COMMIT,
    NEW_END,
    add_group,
    describe,
    end,
    end_and_settle,
    init,
    nobody,
)


@transaction_case("AddOffsetsToTxn", 0, 1, 2, 3, 4)
def of_a_group(talk: Talk, version: int) -> None:
    """The partition of the group is in the transaction, and is added again without harm."""
    group = ready(talk)
    producer = init(talk, 4)
    add_group(talk, version, producer, group)
    add_group(talk, version, producer, group)
    describe(talk, producer)
    end_and_settle(talk, CLASSIC_END, producer, COMMIT)
    describe(talk, producer)


@transaction_case("AddOffsetsToTxn", 0, 4)
def of_the_empty_group(talk: Talk, version: int) -> None:
    """Not even a name."""
    ready(talk)
    producer = init(talk, 4)
    add_group(talk, version, producer, "")
    describe(talk, producer)


@transaction_case("AddOffsetsToTxn", 0, 4)
def of_an_unknown_transactional_id(talk: Talk, version: int) -> None:
    """An id that nobody initialised, and an empty one."""
    group = ready(talk)
    unknown = nobody(talk)
    add_group(talk, version, unknown, group)
    add_group(talk, version, replace(unknown, name=""), group)


@transaction_case("AddOffsetsToTxn", 1, 2, 4)
def of_the_wrong_producer(talk: Talk, version: int) -> None:
    """An older epoch, a newer one, another producer id."""
    group = ready(talk)
    zombie = init(talk, 4)
    producer = init(talk, 4)
    add_group(talk, version, zombie, group)
    add_group(talk, version, producer.with_epoch(9), group)
    add_group(talk, version, replace(producer, id=talk.new_producer_id()), group)
    describe(talk, producer)


@transaction_case("AddOffsetsToTxn", 0, 4)
def after_an_end(talk: Talk, version: int) -> None:
    """In both protocols: the next transaction begins with it."""
    group = ready(talk)
    producer = init(talk, 4)
    add_group(talk, version, producer, group)
    end_and_settle(talk, CLASSIC_END, producer, COMMIT)
    add_group(talk, version, producer, group)
    after = end_and_settle(talk, NEW_END, producer, ABORT)
    add_group(talk, version, producer, group)
    add_group(talk, version, after, group)
    end(talk, NEW_END, after, COMMIT)
