"""Transactions in trouble: coordinators that move, lost answers, fencing, records that fail."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.unit.client.fake_cluster import Close, Drop, DropAnswer
from tests.unit.client.producer.given import word
from tests.unit.client.producer.transaction_story import (
    ADD_OFFSETS,
    ADD_PARTITIONS,
    CALLS,
    COMMIT_OFFSETS,
    END,
    FIND,
    INIT,
    PRODUCE,
    TOPIC,
    S,
    TransactionStory,
)
from tidelog.client.producer.outcome import RECORD_TOO_LARGE, SendRefused
from tidelog.client.producer.transaction_errors import (
    TRANSACTION_ABORTED,
    ProducerFenced,
    TransactionAbortable,
)
from tidelog.client.producer.transaction_outcome import (
    FailureKind,
    TransactionFailed,
    TransactionOk,
)
from tidelog.core.model.errors import ErrorCode as E

both = pytest.mark.parametrize("protocol", ["classic", "2"])


# Coordinators that move, answers that are lost


@both
@pytest.mark.parametrize("error", [E.NOT_COORDINATOR, E.COORDINATOR_NOT_AVAILABLE])
def test_a_coordinator_that_moved_is_looked_up_again(protocol: str, error: E) -> None:
    story = TransactionStory(protocol)
    story.ready()
    story.open("a")
    story.script(END, error)
    story.coordinator.nodes[1] = 3

    assert isinstance(story.wait(story.commit()), TransactionOk)
    assert story.apis(FIND, END) == [END, FIND, END]
    assert [each.broker_id for each in story.requests(END)] == [1, 3]


@both
def test_a_dead_coordinator_is_looked_up_again(protocol: str) -> None:
    story = TransactionStory(protocol)
    story.cluster[f"{TOPIC}-0"].leader = 2
    story.ready()
    story.open("a")
    story.cluster.kill(1)
    story.coordinator.nodes[1] = 3

    assert isinstance(story.wait(story.commit()), TransactionOk)
    assert story.coordinator.ends == [True]


def test_the_group_coordinator_moves_on_its_own() -> None:
    story = TransactionStory()
    story.ready()
    story.begin()
    story.wait(story.send_offsets(1))
    story.coordinator.nodes[0] = 3
    assert isinstance(story.wait(story.send_offsets(2)), TransactionOk)
    assert [each.broker_id for each in story.requests(COMMIT_OFFSETS)] == [2, 2, 3]


@both
@pytest.mark.parametrize("commits", [True, False])
def test_an_end_whose_answer_is_lost_is_asked_for_again(protocol: str, commits: bool) -> None:
    """It is decided once, and the producer goes on under the right epoch."""
    story = TransactionStory(protocol)
    story.ready()
    story.open("a")
    story.script(END, DropAnswer())

    ended = story.wait(story.commit() if commits else story.abort())

    assert isinstance(ended, TransactionOk) and story.coordinator.ends == [commits]
    assert len({str(each.request) for each in story.requests(END)}) == 1, "the same request"
    story.open("b")
    assert isinstance(story.wait(story.commit()), TransactionOk)
    assert story.coordinator.committed == (["a"] if commits else []) + ["b"]


@both
def test_a_commit_is_unknown_only_if_an_attempt_was_not_refused(protocol: str) -> None:
    outcomes = []
    for lost in (None, DropAnswer(), Close(), E.NOT_COORDINATOR, E.COORDINATOR_LOAD_IN_PROGRESS):
        story = TransactionStory(protocol)
        story.ready()
        story.open("a")
        story.script(END, E.PRODUCER_FENCED)
        if lost is not None:
            story.script(END, lost)
        outcome = story.wait(story.commit())
        assert isinstance(outcome, TransactionFailed) and outcome.kind is FailureKind.FATAL
        outcomes.append(outcome.is_unknown)
    assert outcomes == [False, True, True, True, False]


def test_a_commit_is_unknown_if_the_producer_is_closed_before_its_answer() -> None:
    story = TransactionStory()
    story.ready()
    story.open("a")
    story.script(END, Drop())
    committing = story.commit()
    story.clock.run_for(100)
    story.host.do(story.producer.abort)
    assert isinstance(committing.outcome, TransactionFailed) and committing.outcome.is_unknown


def test_an_added_partition_whose_answer_was_lost_is_settled_before_the_abort() -> None:
    """Otherwise the coordinator might keep a transaction open that nobody ends."""
    story = TransactionStory("classic", linger_ms=60_000)
    story.ready()
    story.begin()
    story.script(ADD_PARTITIONS, DropAnswer())
    story.send("a")
    story.clock.run_for(10)
    assert story.coordinator.is_ongoing

    assert isinstance(story.wait(story.abort()), TransactionOk)
    assert story.apis(ADD_PARTITIONS, PRODUCE, END) == [ADD_PARTITIONS, ADD_PARTITIONS, END]
    assert story.coordinator.ends == [False]


def test_an_added_group_whose_answer_was_lost_is_settled_before_the_abort() -> None:
    story = TransactionStory("classic")
    story.ready()
    story.begin()
    story.script(ADD_OFFSETS, DropAnswer())
    offsets = story.send_offsets(7)
    story.clock.run_for(10)

    assert isinstance(story.wait(story.abort()), TransactionOk)
    assert isinstance(offsets.outcome, TransactionFailed)
    assert offsets.outcome.error == TRANSACTION_ABORTED
    assert story.apis(ADD_OFFSETS, COMMIT_OFFSETS, END) == [ADD_OFFSETS, ADD_OFFSETS, END]
    assert story.coordinator.ends == [False] and story.coordinator.offsets == {}


def test_the_end_of_the_last_transaction_is_waited_for_in_short_steps() -> None:
    story = TransactionStory("classic")
    story.ready()
    story.begin()
    for _ in range(3):
        story.script(ADD_PARTITIONS, E.CONCURRENT_TRANSACTIONS)
    story.send("a")
    story.settle()
    times_ms = [each.at_ms for each in story.requests(ADD_PARTITIONS)]
    assert [b - a for a, b in pairwise(times_ms)] == [22] * 3


# Fencing


@both
@pytest.mark.parametrize("ends_with", ["commit", "abort"])
def test_a_fenced_producer_is_over(protocol: str, ends_with: str) -> None:
    story = TransactionStory(protocol)
    story.ready()
    story.open("a")
    story.coordinator.take_over()

    outcome = story.wait(story.commit() if ends_with == "commit" else story.abort())

    assert isinstance(outcome, TransactionFailed)
    assert (outcome.error, outcome.kind) == ("PRODUCER_FENCED", FailureKind.FATAL)
    assert not outcome.is_unknown and story.coordinator.committed == []
    for name, call in CALLS.items():
        with pytest.raises(ProducerFenced):
            call(story)
        assert story.state is S.FATAL_ERROR, name


@both
def test_a_write_under_an_old_epoch_is_fatal_only_when_the_coordinator_says_so(
    protocol: str,
) -> None:
    """A leader knows a newer epoch also when the transaction has only timed out."""
    story = TransactionStory(protocol)
    story.ready()
    story.open("a")
    story.coordinator.take_over()
    refused = story.send("b")
    story.settle()
    assert word(refused.outcome) == "refused" and story.state is S.ABORTABLE_ERROR
    with pytest.raises(TransactionAbortable):
        story.commit()

    outcome = story.wait(story.abort())
    assert isinstance(outcome, TransactionFailed) and outcome.kind is FailureKind.FATAL


# Records that fail


@both
def test_after_an_expired_batch_the_transaction_is_aborted_and_the_next_one_is_whole(
    protocol: str,
) -> None:
    """The classic protocol asks for the next epoch, version 2 gets one with every end."""
    story = TransactionStory(protocol, delivery_timeout_ms=2_000, request_timeout_ms=500)
    story.ready()
    story.open("a")
    story.cluster.rules.insert(0, lambda _, request: Drop() if request.api_key == PRODUCE else None)
    expired = story.send("b")
    committing = story.commit()
    failed = story.wait(committing)
    assert word(expired.outcome) == "unknown"
    assert isinstance(failed, TransactionFailed) and not failed.is_unknown
    assert (failed.error, failed.kind) == ("TIMED_OUT", FailureKind.ABORTABLE)
    assert story.state is S.ABORTABLE_ERROR and story.apis(END) == []

    del story.cluster.rules[0]
    story.cluster.seen.clear()
    assert isinstance(story.wait(story.abort()), TransactionOk)
    assert story.apis(END, INIT) == ([END, INIT] if protocol == "classic" else [END])
    story.open("c")
    story.wait(story.commit())
    assert story.numbers() == [(1, 0)] and story.coordinator.committed == ["c"]


@both
def test_a_record_that_is_too_large_spoils_its_transaction(protocol: str) -> None:
    story = TransactionStory(protocol, max_request_size=1_000)
    story.ready()
    story.open("a")
    refused = story.send("x" * 2_000)
    assert isinstance(refused.outcome, SendRefused)
    assert refused.outcome.error == RECORD_TOO_LARGE
    for name in ("send", "send_offsets_to_transaction", "commit_transaction"):
        with pytest.raises(TransactionAbortable, match=RECORD_TOO_LARGE):
            CALLS[name](story)
    assert isinstance(story.wait(story.abort()), TransactionOk)
    assert story.coordinator.ends == [False]


@both
def test_a_batch_that_fails_during_the_commit_makes_it_fail(protocol: str) -> None:
    story = TransactionStory(protocol)
    story.ready()
    story.begin()
    story.script(PRODUCE, E.INVALID_TXN_STATE)
    story.send("a")
    outcome = story.wait(story.commit())
    assert isinstance(outcome, TransactionFailed) and not outcome.is_unknown
    assert (outcome.error, outcome.kind) == ("INVALID_TXN_STATE", FailureKind.ABORTABLE)
    story.wait(story.abort())
    assert story.state is S.READY


@both
def test_a_batch_in_flight_is_settled_before_the_abort(protocol: str) -> None:
    """A copy that is written after the marker would belong to no transaction."""
    story = TransactionStory(protocol, request_timeout_ms=500)
    story.ready()
    story.begin()
    story.script(PRODUCE, Drop())
    slow = story.send("a")
    story.clock.run_for(10)

    assert isinstance(story.wait(story.abort()), TransactionOk)
    assert word(slow.outcome) == "ok" and story.apis(PRODUCE, END)[-1] == END


@both
def test_a_retry_of_a_batch_keeps_its_number(protocol: str) -> None:
    story = TransactionStory(protocol)
    story.ready()
    story.begin()
    story.script(PRODUCE, DropAnswer())
    story.send("a")
    assert isinstance(story.wait(story.commit()), TransactionOk)
    assert story.numbers() == [(0, 0), (0, 0)] and story.coordinator.committed == ["a"]
