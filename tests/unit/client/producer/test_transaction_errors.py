"""Every error code at every step of a transaction: what the table says, what a producer does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.unit.client.producer.transaction_story import S, TransactionStory
from tidelog.client.producer.transaction_errors import (
    ProducerFenced,
    StepDecision,
    TransactionAbortable,
    TransactionError,
    TransactionFatal,
    TransactionStep,
    decide,
    exception_for,
    heaviest,
)
from tidelog.client.producer.transaction_outcome import (
    FailureKind,
    TransactionFailed,
    TransactionOk,
    TransactionTicket,
)
from tidelog.core.model.errors import RETRIABLE
from tidelog.core.model.errors import ErrorCode as E

T = TransactionStep
D = StepDecision
CODES = [each for each in E if each is not E.NONE]
GO_ON = frozenset({D.DONE, D.RETRY, D.RETRY_SOON, D.FIND_COORDINATOR})


@pytest.mark.parametrize(
    ("step", "code", "decision"),
    [
        # A fenced producer, as the coordinators say it.
        (T.INIT_PRODUCER_ID, E.INVALID_PRODUCER_EPOCH, D.FATAL),
        (T.INIT_PRODUCER_ID, E.PRODUCER_FENCED, D.FATAL),
        (T.ADD_PARTITIONS, E.INVALID_PRODUCER_EPOCH, D.FATAL),
        (T.ADD_PARTITIONS, E.INVALID_PRODUCER_ID_MAPPING, D.FATAL),
        (T.ADD_OFFSETS, E.PRODUCER_FENCED, D.FATAL),
        (T.COMMIT_OFFSETS, E.INVALID_PRODUCER_EPOCH, D.FATAL),
        (T.COMMIT, E.INVALID_PRODUCER_ID_MAPPING, D.FATAL),
        # A leader's word is not the coordinator's.
        (T.PRODUCE, E.INVALID_PRODUCER_EPOCH, D.ABORT_AND_BUMP),
        (T.PRODUCE, E.PRODUCER_FENCED, D.FATAL),
        (T.PRODUCE, E.INVALID_PRODUCER_ID_MAPPING, D.FATAL),
        (T.PRODUCE, E.INVALID_TXN_STATE, D.ABORT_AND_BUMP),
        (T.PRODUCE, E.UNKNOWN_PRODUCER_ID, D.ABORT_AND_BUMP),
        (T.PRODUCE, E.NOT_ENOUGH_REPLICAS, D.ABORT_AND_BUMP),
        # A state that cannot be.
        (T.ADD_PARTITIONS, E.INVALID_TXN_STATE, D.FATAL),
        (T.ADD_OFFSETS, E.INVALID_TXN_STATE, D.FATAL),
        (T.COMMIT, E.INVALID_TXN_STATE, D.FATAL),
        (T.ABORT, E.INVALID_TXN_STATE, D.FATAL),
        # Abort, and go on.
        (T.ADD_PARTITIONS, E.TRANSACTION_ABORTABLE, D.ABORT),
        (T.COMMIT, E.TRANSACTION_ABORTABLE, D.ABORT),
        (T.ABORT, E.TRANSACTION_ABORTABLE, D.FATAL),
        (T.ADD_PARTITIONS, E.TOPIC_AUTHORIZATION_FAILED, D.ABORT),
        (T.ADD_PARTITIONS, E.OPERATION_NOT_ATTEMPTED, D.ABORT),
        (T.ADD_PARTITIONS, E.UNKNOWN_PRODUCER_ID, D.ABORT_AND_BUMP),
        (T.COMMIT_OFFSETS, E.ILLEGAL_GENERATION, D.ABORT),
        (T.COMMIT_OFFSETS, E.UNKNOWN_MEMBER_ID, D.ABORT),
        (T.COMMIT_OFFSETS, E.FENCED_INSTANCE_ID, D.ABORT),
        (T.COMMIT_OFFSETS, E.GROUP_AUTHORIZATION_FAILED, D.ABORT),
        (T.FIND_GROUP_COORDINATOR, E.GROUP_AUTHORIZATION_FAILED, D.ABORT),
        # Once more.
        (T.INIT_PRODUCER_ID, E.CONCURRENT_TRANSACTIONS, D.RETRY),
        (T.ADD_PARTITIONS, E.CONCURRENT_TRANSACTIONS, D.RETRY_SOON),
        (T.COMMIT, E.CONCURRENT_TRANSACTIONS, D.RETRY),
        (T.COMMIT, E.COORDINATOR_LOAD_IN_PROGRESS, D.RETRY),
        (T.COMMIT, E.NOT_COORDINATOR, D.FIND_COORDINATOR),
        (T.COMMIT_OFFSETS, E.REQUEST_TIMED_OUT, D.FIND_COORDINATOR),
        (T.COMMIT_OFFSETS, E.UNKNOWN_TOPIC_OR_PARTITION, D.RETRY),
        # What the program may try again, and what it may not.
        (T.INIT_PRODUCER_ID, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, D.REINITIALIZE),
        (T.INIT_PRODUCER_ID, E.CLUSTER_AUTHORIZATION_FAILED, D.REINITIALIZE),
        (T.INIT_PRODUCER_ID, E.INVALID_TRANSACTION_TIMEOUT, D.FATAL),
        (T.FIND_COORDINATOR, E.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, D.FATAL),
    ],
)
def test_decisions_are_those_of_kafkas_producer(
    step: TransactionStep, code: E, decision: StepDecision
) -> None:
    assert decide(step, code) is decision


def test_the_heaviest_code_of_an_answer_counts() -> None:
    codes = [E.NONE, E.OPERATION_NOT_ATTEMPTED, E.CONCURRENT_TRANSACTIONS]
    assert heaviest(T.ADD_PARTITIONS, codes) is E.OPERATION_NOT_ATTEMPTED
    assert heaviest(T.COMMIT_OFFSETS, []) is E.NONE


def test_errors_say_what_can_be_done() -> None:
    kinds = {
        ("PRODUCER_FENCED", FailureKind.FATAL): ProducerFenced,
        ("INVALID_TXN_STATE", FailureKind.FATAL): TransactionFatal,
        ("ILLEGAL_GENERATION", FailureKind.ABORTABLE): TransactionAbortable,
        ("CLUSTER_AUTHORIZATION_FAILED", FailureKind.REINITIALIZE): TransactionError,
    }
    for (error, kind), expected in kinds.items():
        raised = exception_for(TransactionFailed(error, "because", kind, is_unknown=True))
        assert type(raised) is expected and raised.failure.error == error
        assert kind.value in str(raised) and "committed is unknown" in str(raised)


# What a producer does


def _init(story: TransactionStory, code: E) -> TransactionTicket:
    story.script(22, code)
    return story.init()


def _find(story: TransactionStory, code: E) -> TransactionTicket:
    story.script(10, code, key_type=1)
    return story.init()


def _find_group(story: TransactionStory, code: E) -> TransactionTicket:
    story.ready()
    story.begin()
    story.script(10, code, key_type=0)
    return story.send_offsets(1)


def _add_partitions(story: TransactionStory, code: E) -> TransactionTicket:
    story.ready()
    story.begin()
    story.script(24, code)
    story.send("a")
    return story.commit()


def _add_offsets(story: TransactionStory, code: E) -> TransactionTicket:
    story.ready()
    story.begin()
    story.script(25, code)
    return story.send_offsets(1)


def _commit_offsets(story: TransactionStory, code: E) -> TransactionTicket:
    story.ready()
    story.begin()
    story.script(28, code)
    return story.send_offsets(1)


def _produce(story: TransactionStory, code: E) -> TransactionTicket:
    story.ready()
    story.begin()
    story.script(0, code)
    story.send("a")
    return story.commit()


def _commit(story: TransactionStory, code: E) -> TransactionTicket:
    story.ready()
    story.open("a")
    story.script(26, code)
    return story.commit()


def _abort(story: TransactionStory, code: E) -> TransactionTicket:
    story.ready()
    story.open("a")
    story.script(26, code)
    return story.abort()


STEPS: list[tuple[TransactionStep, Callable[[TransactionStory, E], TransactionTicket], str]] = [
    (T.FIND_COORDINATOR, _find, "2"),
    (T.FIND_GROUP_COORDINATOR, _find_group, "2"),
    (T.INIT_PRODUCER_ID, _init, "2"),
    (T.ADD_PARTITIONS, _add_partitions, "classic"),
    (T.ADD_OFFSETS, _add_offsets, "classic"),
    (T.COMMIT_OFFSETS, _commit_offsets, "classic"),
    (T.COMMIT_OFFSETS, _commit_offsets, "2"),
    (T.PRODUCE, _produce, "classic"),
    (T.PRODUCE, _produce, "2"),
    (T.COMMIT, _commit, "classic"),
    (T.COMMIT, _commit, "2"),
    (T.ABORT, _abort, "classic"),
    (T.ABORT, _abort, "2"),
]


def expected(step: TransactionStep, code: E) -> StepDecision:
    """As the table has it, but that batches are sent again before the table is asked."""
    if step is T.PRODUCE and code in RETRIABLE:
        return D.RETRY
    return decide(step, code)


@pytest.mark.parametrize(
    ("step", "begin", "protocol"), STEPS, ids=[f"{each[0].name}-{each[2]}" for each in STEPS]
)
def test_every_code_at_every_step(
    step: TransactionStep, begin: Callable[[TransactionStory, E], Any], protocol: str
) -> None:
    """Go on, abort and go on, call init_transactions again, or stop: there is no fifth way."""
    for code in CODES:
        if step is T.PRODUCE and code is E.DUPLICATE_SEQUENCE_NUMBER:
            continue  # it means that the batch is there, and here it is not
        story = TransactionStory(protocol)
        outcome = story.wait(begin(story, code))
        decision = expected(step, code)
        assert isinstance(outcome, TransactionOk) is (decision in GO_ON), (code, outcome)
        if decision in GO_ON:
            continue
        assert isinstance(outcome, TransactionFailed) and outcome.error == code.name
        if decision is D.FATAL:
            assert story.state is S.FATAL_ERROR and outcome.kind is FailureKind.FATAL, code
            continue
        if step in (T.INIT_PRODUCER_ID, T.FIND_COORDINATOR):
            assert story.state is S.UNINITIALIZED, code
            assert outcome.kind is FailureKind.REINITIALIZE
            story.ready()
        else:
            assert story.state is S.ABORTABLE_ERROR, code
            assert outcome.kind is FailureKind.ABORTABLE
            assert isinstance(story.wait(story.abort()), TransactionOk), code
        story.open("next")
        assert isinstance(story.wait(story.commit()), TransactionOk), code
        assert story.coordinator.committed == ["next"], code
