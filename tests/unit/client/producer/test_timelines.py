"""Document 3's producer timelines in virtual time: what a producer does when its leader dies."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.fake_cluster import Drop, DropAnswer, once
from tests.unit.client.producer.given import TOPIC, Story, batch_of, numbers, values_of
from tidelog.client.cluster_metadata import Leader
from tidelog.client.events import BatchRetried, LeaderHinted, ProducerEpochBumped
from tidelog.client.producer.outcome import TIMED_OUT, SendOk, SendUnknown
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import TopicPartition
from tidelog.core.wire.messages.api_00_produce import (
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from tidelog.core.wire.messages.api_03_metadata import MetadataRequest

ELECTION_MS = 2_000


def fail_over(story: Story, *, keep: int | None = None, after_ms: int = ELECTION_MS) -> None:
    """Broker 2 leads in a while; until then nobody does."""
    story.log.elect(None)
    story.clock.after(after_ms, lambda: story.log.elect(2, end_offset=keep))


def refuse(error: ErrorCode, *, value: str | None = None) -> Any:
    """A rule: Produce (of this value) is refused."""

    def rule(broker_id: int, request: Any) -> Any:
        if not isinstance(request, ProduceRequest):
            return None
        if value is not None and value not in values_of(request):
            return None
        topic = request.topic_data[0]
        refused = PartitionProduceResponse(
            index=topic.partition_data[0].index, error_code=error, base_offset=-1
        )
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=[refused]
                )
            ]
        )

    return rule


@pytest.mark.scenario("D3-P2", "N13")
def test_a_killed_leader_costs_the_election_and_no_request_timeout() -> None:
    """D3-P2a: the socket closes, so the resend comes right after the election."""
    story = Story()
    story.warm_up()
    story.cluster.rules.append(lambda broker, request: Drop() if broker == 1 else None)
    story.send("order")
    story.clock.run_for(10)

    story.cluster.kill(1)
    fail_over(story)
    story.settle()

    [(at_ms, _, outcome)] = story.completed
    assert isinstance(outcome, SendOk) and outcome.offset == 1
    assert ELECTION_MS < at_ms < ELECTION_MS + 1_500
    assert story.log.values() == ["warm", "order"]


@pytest.mark.scenario("D3-P2", "D3-PS2", "N13")
def test_a_paused_leader_costs_the_request_timeout() -> None:
    """D3-P2b: silence is noticed only when request.timeout.ms is over."""
    story = Story()
    story.warm_up()

    story.cluster.pause(1)
    story.send("order")
    story.clock.after(5_000, lambda: story.log.elect(2))
    story.settle()

    [(at_ms, _, outcome)] = story.completed
    assert isinstance(outcome, SendOk)
    assert 30_000 <= at_ms < 31_500
    assert [retried.error for retried in story.host.trace.of(BatchRetried)] == ["REQUEST_TIMED_OUT"]


@pytest.mark.scenario("D1-P3", "D1-P4")
def test_the_retry_asks_for_metadata_first_and_has_the_sequences_it_had() -> None:
    story = Story()
    story.warm_up()
    story.cluster.rules.append(lambda broker, request: Drop() if broker == 1 else None)
    story.send("order")
    story.clock.run_for(10)

    story.cluster.kill(1)
    fail_over(story, after_ms=50)
    story.settle()

    first, retry = story.produce_requests()
    assert (first.broker_id, retry.broker_id) == (1, 2)
    assert numbers(first) == numbers(retry)
    asked = story.cluster.requests(MetadataRequest)
    assert asked and all(each.broker_id != 1 for each in asked)
    assert first.at_ms < asked[0].at_ms < retry.at_ms


@pytest.mark.scenario("D1-P2", "N21")
def test_a_deposed_leader_that_lives_names_its_successor() -> None:
    """Error 6 carries the new leader: no metadata is asked for before the resend, and no pause."""
    story = Story()
    story.warm_up()

    story.log.elect(2)
    story.send("order")
    story.settle()

    first, retry = story.produce_requests()
    assert (first.broker_id, retry.broker_id) == (1, 2)
    assert retry.at_ms - first.at_ms < 20
    assert [hint.leader_id for hint in story.host.trace.of(LeaderHinted)] == [2]


@pytest.mark.scenario("D3-PS1", "N29")
def test_without_retries_only_the_batch_in_flight_is_unknown_and_at_once() -> None:
    story = Story(retries=0, acks="1")
    story.send("first")
    story.settle()
    story.cluster.rules.append(lambda broker, request: DropAnswer() if broker == 1 else None)
    story.send("second")
    sent_ms = story.elapsed_ms
    story.settle()

    assert story.outcomes() == {"first": "ok", "second": "unknown"}
    assert story.completed[-1][0] - sent_ms < 10
    assert len(story.produce_requests()) == 2
    assert story.log.values() == ["first", "second"], "unknown: here it was written"


@pytest.mark.scenario("D3-PS2", "N28")
@pytest.mark.parametrize(("idempotent", "copies"), [(False, 2), (True, 1)])
def test_a_lost_answer_and_its_retry(idempotent: bool, copies: int) -> None:
    """D3-PS2b: without idempotence the retry is a second copy; with it, a recognised one."""
    story = Story(enable_idempotence=idempotent)
    story.warm_up()
    story.cluster.rules.append(once(_lose_produce_answer))

    story.send("order")
    story.settle()

    assert story.log.values() == ["warm"] + ["order"] * copies
    [(_, _, outcome)] = story.completed
    assert isinstance(outcome, SendOk)
    assert outcome.offset == (2 if not idempotent else 1)


def _lose_produce_answer(broker_id: int, request: Any) -> Any:
    return DropAnswer() if isinstance(request, ProduceRequest) else None


@pytest.mark.scenario("D3-PS2", "N28")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"enable_idempotence": False}, ["warm", "two", "one"]),
        ({"enable_idempotence": True}, ["warm", "one", "two"]),
        (
            {"enable_idempotence": False, "max_in_flight_requests_per_connection": 1},
            ["warm", "one", "two"],
        ),
    ],
)
def test_the_first_of_two_batches_is_refused_once(
    settings: dict[str, Any], expected: list[str]
) -> None:
    """D3-PS2c: retries reorder, unless batches are numbered or only one is in flight."""
    story = Story(**settings)
    story.warm_up()
    story.cluster.rules.append(once(refuse(ErrorCode.NOT_ENOUGH_REPLICAS, value="one")))

    story.send_all("one", "two")
    story.settle()

    assert story.log.values() == expected
    assert set(story.outcomes().values()) == {"ok"}


@pytest.mark.scenario("D3-PS2")
def test_the_delivery_timeout_bounds_it_all_and_later_records_flow() -> None:
    """D3-PS2d: the batch is unknown at delivery.timeout.ms; the producer bumps its epoch."""
    story = Story(delivery_timeout_ms=10_000, request_timeout_ms=5_000)
    story.warm_up()
    story.cluster.rules.append(lambda broker, request: Drop() if broker == 1 else None)
    story.send("lost")
    story.clock.run_for(10)
    story.cluster.kill(1)
    story.log.elect(None)
    story.settle()

    [(at_ms, _, outcome)] = story.completed
    assert isinstance(outcome, SendUnknown) and outcome.error == TIMED_OUT
    assert at_ms == 10_000

    story.log.elect(2)
    story.send("later")
    story.settle()
    story.send("last")
    story.settle()

    assert story.outcomes() == {"lost": "unknown", "later": "ok", "last": "ok"}
    [bumped] = story.host.trace.of(ProducerEpochBumped)
    assert bumped.producer_epoch == 1
    later = [header for header in story.log.headers() if header.producer_epoch == 1]
    assert [header.base_sequence for header in later] == [0, 1]
    assert not [each for each in story.host.trace.of(BatchRetried) if "SEQUENCE" in each.error]


@pytest.mark.scenario("D3-PS3")
def test_the_new_leader_has_the_copy_and_answers_with_its_first_offset() -> None:
    """D3-PS3a: written by leader epoch 0, recognised in leader epoch 2, one copy."""
    story = Story()
    story.warm_up()
    story.cluster.rules.append(once(_lose_produce_answer))
    story.send("order")
    story.clock.run_for(3)

    story.cluster.kill(1)
    fail_over(story, after_ms=100)
    story.settle()

    [(_, _, outcome)] = story.completed
    assert isinstance(outcome, SendOk) and outcome.offset == 1
    assert [header.leader_epoch for header in story.log.headers()] == [0, 0]


@pytest.mark.scenario("D3-PS3")
def test_the_new_leader_has_not_the_copy_and_writes_it() -> None:
    """D3-PS3b: the same offset again, in the new leader epoch, and one copy."""
    story = Story()
    story.warm_up()
    story.cluster.rules.append(once(_lose_produce_answer))
    story.send("order")
    story.clock.run_for(3)

    story.cluster.kill(1)
    fail_over(story, keep=1, after_ms=100)
    story.settle()

    [(_, _, outcome)] = story.completed
    assert isinstance(outcome, SendOk) and outcome.offset == 1
    assert [header.leader_epoch for header in story.log.headers()] == [0, 2]
    assert story.log.values() == ["warm", "order"]


@pytest.mark.scenario("D3-C1", "N25")
def test_with_acks_0_a_record_that_dies_on_the_way_is_a_success() -> None:
    story = Story(acks="0")
    story.send("warm")
    story.settle()
    story.clock.run_for(5)
    story.cluster.rules.append(
        lambda broker, request: Drop() if isinstance(request, ProduceRequest) else None
    )

    story.send("lost")
    story.clock.run_for(2)
    story.cluster.kill(1)
    fail_over(story)
    story.clock.run_for(60_000)

    outcomes = [(value, outcome) for _, value, outcome in story.completed]
    assert [value for value, _ in outcomes] == ["warm", "lost"]
    assert all(isinstance(outcome, SendOk) and outcome.offset is None for _, outcome in outcomes)
    assert story.log.values() == ["warm"], "silently lost"
    assert len(story.produce_requests()) == 2, "and never retried"


def test_five_batches_are_in_flight_at_most_and_keep_their_order() -> None:
    story = Story(batch_size=1)
    story.warm_up()
    held: list[Any] = []

    def hold(broker_id: int, request: Any) -> Any:
        if isinstance(request, ProduceRequest) and len(held) < 5:
            held.append(request)
            return Drop()
        return None

    story.cluster.rules.append(hold)
    story.send_all("a", "b", "c", "d", "e", "f", "g")
    story.clock.run_for(10)
    assert len(story.produce_requests()) == 5

    story.cluster.kill(1)
    fail_over(story, after_ms=100)
    story.settle()

    assert story.log.values() == ["warm", *"abcdefg"]
    assert [header.base_sequence for header in story.log.headers()] == list(range(8))
    assert set(story.outcomes().values()) == {"ok"}


def test_records_of_one_turn_share_a_batch_and_linger_waits_for_company() -> None:
    story = Story(linger_ms=50)
    story.warm_up()

    story.send("a")
    story.clock.run_for(30)
    story.send("b")
    assert not story.produce_requests()
    story.settle()

    [sent] = story.produce_requests()
    assert batch_of(sent).records_count == 2
    assert sent.at_ms - story.began_ms == 51


def test_a_flush_does_not_linger() -> None:
    story = Story(linger_ms=1_000)
    story.warm_up()
    done: list[int] = []

    story.send("a")
    story.host.do(lambda now_ms: story.producer.flush(now_ms, done.append))
    story.settle(within_ms=100)

    assert done and story.outcomes() == {"a": "ok"}


def test_a_cluster_without_the_api_versions_of_today_is_spoken_to_in_its_own() -> None:
    story = Story()
    story.cluster.api_versions = {0: (3, 9), 3: (0, 9)}

    story.send("a")
    story.settle()

    [sent] = story.produce_requests()
    assert sent.version == 9
    assert sent.request.topic_data[0].name == TOPIC


def test_a_batch_that_expires_on_the_wire_is_unknown() -> None:
    """It waited long for a leader, and was sent shortly before its time was up."""
    story = Story(delivery_timeout_ms=3_000, request_timeout_ms=2_000)
    story.warm_up()
    story.log.elect(None)
    story.host.client.metadata.see_leader_epoch(TopicPartition(TOPIC, 0), 1)
    story.cluster.rules.append(
        lambda broker, request: Drop() if isinstance(request, ProduceRequest) else None
    )
    story.send("order")
    story.clock.after(1_500, lambda: story.log.elect(2))
    story.settle()

    assert len(story.produce_requests(2)) == 1
    assert story.outcomes() == {"order": "unknown"}
    assert story.completed[0][0] == 3_000


@pytest.mark.parametrize("in_flight", [1, 2, 3])
def test_no_more_requests_are_unanswered_than_allowed(in_flight: int) -> None:
    story = Story(
        batch_size=1,
        enable_idempotence=False,
        max_in_flight_requests_per_connection=in_flight,
    )
    story.warm_up()
    story.cluster.rules.append(lambda broker, request: Drop() if broker == 1 else None)

    story.send_all("a", "b", "c", "d", "e")
    story.clock.run_for(20)

    assert len(story.produce_requests()) == in_flight


def test_with_one_in_flight_a_batch_waits_for_the_one_before_it_even_at_another_broker() -> None:
    story = Story(enable_idempotence=False, max_in_flight_requests_per_connection=1)
    story.warm_up()
    story.cluster.rules.append(lambda broker, request: Drop() if broker == 1 else None)
    story.send("a")
    story.clock.run_for(5)

    story.log.elect(2)
    metadata = story.host.client.metadata
    assert metadata.learn_leader(TopicPartition(TOPIC, 0), Leader(2, 1), [])
    story.send("b")
    story.clock.run_for(100)
    assert not story.produce_requests(2)

    story.cluster.kill(1)
    story.settle()
    assert story.log.values() == ["warm", "a", "b"]
