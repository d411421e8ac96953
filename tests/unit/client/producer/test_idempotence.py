"""How an idempotent producer numbers, splits, and heals gaps; and what it never gets over."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fake_cluster import Close, Drop, DropAnswer, Swallow, once
from tests.unit.client.producer.given import TOPIC, Story, batch_of, numbers, values_of
from tests.unit.client.producer.test_timelines import refuse
from tidelog.client.cluster_metadata import Leader
from tidelog.client.events import (
    BatchRetried,
    BatchSplit,
    ProducerEpochBumped,
    ProducerIdentified,
)
from tidelog.client.producer.outcome import SendOk, SendRefused
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch, TopicPartition
from tidelog.core.model.limits import INT16_MAX
from tidelog.core.wire.messages.api_00_produce import BatchIndexAndErrorMessage, ProduceRequest
from tidelog.core.wire.messages.api_22_init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)


@pytest.mark.scenario("X-20")
def test_a_leader_that_lost_records_gets_a_new_producer_epoch_not_a_gap() -> None:
    """An unclean leader knows less than was acknowledged: 45, then on from sequence 0."""
    story = Story()
    for value in ("a", "b", "c", "d"):
        story.send(value)
        story.settle()

    story.log.elect(2, end_offset=2)
    for value in ("e", "f"):
        story.send(value)
        story.settle()

    assert story.log.values() == ["a", "b", "e", "f"]
    written = [(each.producer_epoch, each.base_sequence) for each in story.log.headers()]
    assert written == [(0, 0), (0, 1), (1, 0), (1, 1)]
    errors = [each.error for each in story.host.trace.of(BatchRetried)]
    assert errors.count("OUT_OF_ORDER_SEQUENCE_NUMBER") == 1
    assert set(story.outcomes().values()) == {"ok"}


def test_a_leader_that_lost_records_in_flight_gets_all_of_them_again_in_order() -> None:
    story = Story(batch_size=1)
    story.warm_up()
    story.send_all("a", "b")
    story.settle()

    story.log.elect(2, end_offset=1)
    story.send_all("c", "d", "e")
    story.settle()

    assert story.log.values() == ["warm", "c", "d", "e"]
    assert [each.producer_epoch for each in story.log.headers()][1:] == [1, 1, 1]


def test_other_partitions_finish_under_the_old_epoch_before_they_take_the_new_one() -> None:
    story = Story(partitions=2, batch_size=1)
    for index in (0, 1):
        story.send("first", partition=index)
    story.settle()
    story.send("second", partition=0)
    story.settle()

    story.log.elect(1, end_offset=1)
    story.send("third", partition=0)
    story.settle()
    story.send("second", partition=1)
    story.settle()

    other = story.cluster[f"{TOPIC}-1"]
    assert other.values() == ["first", "second"]
    written = [(each.producer_epoch, each.base_sequence) for each in other.headers()]
    assert written == [(0, 0), (1, 0)]


def test_a_refused_record_is_refused_alone_and_those_behind_it_are_numbered_anew() -> None:
    """The broker takes no batch of that size, and one record cannot be split."""
    story = Story(batch_size=1)
    story.warm_up()
    story.log.batch_bytes_max = 200

    story.send_all("x" * 300, "b", "c")
    story.settle()

    assert story.outcomes() == {"x" * 300: "refused", "b": "ok", "c": "ok"}
    assert story.log.values() == ["warm", "b", "c"]
    assert story.host.trace.of(ProducerEpochBumped)[0].producer_epoch == 1


def test_a_batch_behind_a_refused_one_is_never_written_twice() -> None:
    """A leader that does not know the producer takes the second batch; its answer is lost."""
    story = Story(batch_size=1)
    story.log.batch_bytes_max = 200

    def swallow(broker_id: int, request: Any) -> Any:
        is_b = isinstance(request, ProduceRequest) and values_of(request) == ["b"]
        return Swallow() if is_b else None

    story.cluster.rules.append(once(swallow))
    story.send_all("x" * 300, "b", "c")
    story.clock.run_until(lambda: story.completed)
    story.cluster.kill(1)
    story.log.elect(2)
    story.settle()

    assert story.outcomes() == {"x" * 300: "refused", "b": "ok", "c": "ok"}
    assert story.log.values() == ["b", "c"]


def test_a_batch_that_is_too_large_goes_on_in_parts_with_the_same_numbers() -> None:
    story = Story(batch_size=2_000, linger_ms=5)
    story.warm_up()
    story.log.batch_bytes_max = 900
    values = [f"{number:03}".ljust(200, ".") for number in range(8)]

    for value in values:
        story.send(value)
    story.settle()

    assert story.log.values() == ["warm", *values]
    assert story.host.trace.of(BatchSplit)
    written = [(each.producer_epoch, each.base_sequence) for each in story.log.headers()]
    assert {producer_epoch for producer_epoch, _ in written} == {0}
    offsets = [outcome.offset for _, _, outcome in story.completed if isinstance(outcome, SendOk)]
    assert offsets == list(range(1, 9))


def test_parts_and_later_batches_keep_their_order() -> None:
    """Three batches in flight, the first too large: 45 for the others until it is written."""
    story = Story(batch_size=1_000)
    story.warm_up()
    story.log.batch_bytes_max = 700
    values = [f"{number:03}".ljust(300, ".") for number in range(9)]

    story.send_all(*values)
    story.settle()

    assert story.log.values() == ["warm", *values]


def test_a_duplicate_that_nobody_remembers_is_a_success_without_an_offset() -> None:
    story = Story()
    story.warm_up()
    story.cluster.rules.append(once(refuse(ErrorCode.DUPLICATE_SEQUENCE_NUMBER)))
    story.send("a")
    story.settle()

    [(_, _, outcome)] = story.completed
    assert isinstance(outcome, SendOk) and outcome.offset is None


@pytest.mark.parametrize("error", [ErrorCode.CLUSTER_AUTHORIZATION_FAILED, ErrorCode(90)])
def test_after_a_fatal_error_nothing_is_taken_any_more(error: ErrorCode) -> None:
    story = Story()
    story.warm_up()
    story.cluster.rules.append(refuse(error))

    story.send("a")
    story.settle()
    story.send("b")

    assert story.outcomes() == {"a": "refused", "b": "refused"}
    assert len(story.produce_requests()) == 1


def test_an_old_producer_epoch_is_answered_with_a_newer_one() -> None:
    story = Story()
    story.warm_up()
    story.log.producers[1234].producer_epoch = 0
    story.cluster.rules.append(once(refuse(ErrorCode.INVALID_PRODUCER_EPOCH)))

    story.send("a")
    story.settle()
    story.send("b")
    story.settle()

    assert story.outcomes() == {"a": "refused", "b": "ok"}
    assert story.log.headers()[-1].producer_epoch == 1


def test_at_the_last_producer_epoch_a_new_id_is_asked_for() -> None:
    story = Story()
    story.warm_up()
    sequences = story.producer._sender.sequences
    assert sequences is not None
    sequences.identify(ProducerIdAndEpoch(1_234, INT16_MAX))
    for value in ("a", "b"):
        story.send(value)
        story.settle()

    story.log.elect(2, end_offset=2)
    story.send("c")
    story.settle()

    assert [each.producer_id for each in story.host.trace.of(ProducerIdentified)] == [1_234, 1_235]
    assert story.log.headers()[-1].producer_id == 1_235
    assert story.log.headers()[-1].base_sequence == 0


def test_the_id_is_asked_for_again_until_somebody_gives_one() -> None:
    story = Story()
    asked: list[int] = []

    def not_yet(broker_id: int, request: Any) -> Any:
        if not isinstance(request, InitProducerIdRequest) or len(asked) == 3:
            return None
        asked.append(broker_id)
        if len(asked) == 2:
            return Close()
        error = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return InitProducerIdResponse(error_code=error, producer_epoch=-1)

    story.cluster.rules.append(not_yet)
    story.send("a")
    story.settle()

    assert len(asked) == 3
    assert story.outcomes() == {"a": "ok"}


def test_a_retry_waits_its_turn_behind_those_that_came_before_it() -> None:
    """Two batches at two brokers come back in the wrong order; they are resent in the right one."""
    story = Story(batch_size=1)
    story.warm_up()
    story.cluster.rules.append(
        lambda broker, request: (
            Drop() if broker == 1 and isinstance(request, ProduceRequest) else None
        )
    )
    story.send("a")
    story.clock.run_for(5)
    story.log.elect(2)
    partition = TopicPartition(TOPIC, 0)
    assert story.host.client.metadata.learn_leader(partition, Leader(2, 1), [])
    story.send("b")
    story.clock.run_for(500)
    assert story.outcomes() == {}, "b is out of sequence as long as a is on its way"

    story.cluster.kill(1)
    story.settle()

    assert story.log.values() == ["warm", "a", "b"]
    assert [each.producer_epoch for each in story.log.headers()] == [0, 0, 0]


def test_an_error_after_the_append_leaves_the_record_unknown() -> None:
    """NOT_ENOUGH_REPLICAS_AFTER_APPEND until the time is up: it may well be in the log."""
    story = Story(delivery_timeout_ms=3_000, request_timeout_ms=1_000)
    story.warm_up()
    after_append = ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND
    before_append = ErrorCode.NOT_ENOUGH_REPLICAS
    story.cluster.rules.append(refuse(after_append, value="a"))
    story.cluster.rules.append(refuse(before_append, value="b"))

    story.send("a")
    story.settle()
    story.send("b")
    story.settle()

    assert story.outcomes() == {"a": "unknown", "b": "refused"}


def test_a_reason_for_each_record_that_made_its_batch_be_refused() -> None:
    story = Story(linger_ms=5)
    story.warm_up()

    def invalid(broker_id: int, request: Any) -> Any:
        answer = refuse(ErrorCode.INVALID_RECORD)(broker_id, request)
        if answer is not None:
            refused = answer.responses[0].partition_responses[0]
            refused.error_message = "bad batch"
            refused.record_errors = [_record_error(1, "no key")]
        return answer

    story.cluster.rules.append(invalid)
    story.send_all("a", "b")
    story.settle()

    reasons = {value: outcome for _, value, outcome in story.completed}
    assert reasons["b"] == SendRefused("INVALID_RECORD", "no key")
    assert reasons["a"] == SendRefused("INVALID_RECORD", "another record of its batch was invalid")


def _record_error(index: int, message: str) -> Any:
    return BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)


def test_ten_failovers_lose_duplicate_and_reorder_nothing() -> None:
    """Answers are lost and leaders change; what was acknowledged before is always kept."""
    story = Story(batch_size=100, seed=5)
    story.warm_up()
    requests: list[int] = []

    def lossy(broker_id: int, request: Any) -> Any:
        if not isinstance(request, ProduceRequest):
            return None
        requests.append(broker_id)
        return (None, DropAnswer(), Close(), None, None)[len(requests) % 5]

    story.cluster.rules.append(lossy)
    sent = []
    for number in range(100):
        value = f"{number:04}"
        sent.append(value)
        story.send(value)
        if number % 10 == 9:
            story.clock.run_for(7)
            story.log.elect(1 + number // 10 % 3)
    story.settle()

    assert story.log.values() == ["warm", *sent]
    assert set(story.outcomes().values()) == {"ok"}
    first = story.produce_requests()[0]
    assert numbers(first)[0] == batch_of(first).producer_id == 1_234
    assert values_of(first.request)
