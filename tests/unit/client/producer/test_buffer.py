"""Document 3's producer buffer: what fills it, whom it blocks, and how it drains."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.client.producer.given import TOPIC, Story
from tidelog.client.producer.config import producer_config
from tidelog.client.producer.outcome import (
    BUFFER_EXHAUSTED,
    PRODUCER_CLOSED,
    RECORD_TOO_LARGE,
    TIMED_OUT,
    SendRefused,
)
from tidelog.client.producer.producer import ProducerClosed, ProducerMachine

KIB = 1_024


def small_buffer(**settings: Any) -> Story:
    """Room for four batches of one KiB."""
    return Story(batch_size=KIB, buffer_memory=4 * KIB, **settings)


def record(name: str) -> str:
    """Two of these do not fit into one batch."""
    return name.ljust(600, ".")


def names(story: Story) -> list[str]:
    return [value.rstrip(".") for value in story.log.values()]


def outcomes(story: Story) -> list[tuple[str, str]]:
    return [(value.rstrip("."), type(outcome).__name__) for _, value, outcome in story.completed]


@pytest.mark.scenario("D3-PB1", "D3-PB2", "D3-PB3", "D3-PB4")
def test_while_the_leader_is_silent_records_are_taken_until_the_buffer_is_full() -> None:
    story = small_buffer()
    story.warm_up()
    story.cluster.pause(1)

    tickets = [story.send(record(f"r{number}")) for number in range(4)]
    story.clock.run_for(100)

    assert not any(ticket.is_blocked for ticket in tickets)
    assert story.producer.buffer_available_bytes == 0
    assert not story.produce_requests(), "nothing reaches anybody"
    assert not story.completed


@pytest.mark.scenario("D3-PB5", "D3-PB6", "N27")
def test_the_next_send_blocks_for_max_block_ms_and_its_ticket_is_refused() -> None:
    story = small_buffer(max_block_ms=2_000)
    story.warm_up()
    story.cluster.pause(1)
    for number in range(4):
        story.send(record(f"r{number}"))

    ticket = story.send(record("blocked"))
    assert story.producer.blocked_until_ms == ticket.blocked_until_ms
    assert ticket.blocked_until_ms == story.clock.now_ms + 2_000
    began_ms = story.elapsed_ms
    story.clock.run_for(1_999)
    assert not story.completed
    story.clock.run_for(1)

    assert isinstance(ticket.outcome, SendRefused) and ticket.outcome.error == BUFFER_EXHAUSTED
    assert [at_ms for at_ms, _, _ in story.completed] == [began_ms + 2_000]
    assert story.producer.pending == 4, "the others wait on"


@pytest.mark.scenario("D3-PB7")
def test_after_the_election_everything_buffered_arrives_once_and_the_blocked_call_returns() -> None:
    """Time-outs until 30 s, elected at 30.1 s, drained soon after."""
    story = small_buffer()
    story.warm_up()
    story.cluster.pause(1)
    for number in range(4):
        story.send(record(f"r{number}"))
    blocked = story.send(record("blocked"))
    story.clock.after(30_100, lambda: story.log.elect(2))

    story.clock.run_until(lambda: not blocked.is_blocked)
    returned_ms = story.elapsed_ms
    story.settle()

    assert 30_100 < returned_ms < 32_000, "less than max.block.ms"
    assert names(story) == ["warm", "r0", "r1", "r2", "r3", "blocked"]
    assert {word for _, word in outcomes(story)} == {"SendOk"}


def test_blocked_records_keep_their_order_and_full_batches_need_not_linger() -> None:
    story = small_buffer(linger_ms=60_000, delivery_timeout_ms=120_000)
    tickets = [story.send(record(f"r{number}")) for number in range(9)]
    assert tickets[-1].is_blocked

    story.settle(within_ms=1_000 + 60_000)

    assert names(story) == [f"r{number}" for number in range(9)]


def test_somebody_who_waits_for_room_ends_all_lingering() -> None:
    """The open batch of a partition is sent although it could take more."""
    story = small_buffer(partitions=5, linger_ms=60_000)
    for index in range(4):
        story.send("r", partition=index)
    story.clock.run_for(100)
    assert not story.produce_requests()

    ticket = story.send("r", partition=4)
    story.clock.run_for(100)

    assert not ticket.is_blocked
    assert len(story.cluster["orders-0"].values()) == 1


def test_a_topic_nobody_knows_blocks_and_is_refused_by_name() -> None:
    story = Story(max_block_ms=3_000)
    ticket = story.host.do(
        lambda now_ms: story.producer.send("nowhere", b"x", now_ms=now_ms, then=story._on_outcome)
    )
    story.clock.run_for(3_000)

    assert isinstance(ticket.outcome, SendRefused)
    assert ticket.outcome.error == TIMED_OUT and "nowhere" in ticket.outcome.reason


def test_a_topic_that_appears_in_time_unblocks() -> None:
    story = Story()
    ticket = story.host.do(lambda now_ms: story.producer.send("late", b"x", now_ms=now_ms))
    story.clock.after(2_000, lambda: story.cluster.create("late"))

    story.clock.run_until(lambda: not ticket.is_blocked)
    waited_ms = story.elapsed_ms
    story.settle()

    assert 2_000 <= waited_ms < 3_200, "looked for at least once a second"
    assert story.cluster["late-0"].values() == ["x"]


def test_a_partition_that_does_not_exist_blocks_and_is_refused() -> None:
    story = Story(max_block_ms=500)
    ticket = story.send("x", partition=7)
    story.clock.run_for(500)

    assert isinstance(ticket.outcome, SendRefused) and "orders-7" in ticket.outcome.reason


def test_a_record_larger_than_a_request_is_refused_at_once() -> None:
    story = Story(max_request_size=1_000)
    story.send("small")
    story.settle()
    ticket = story.send("x" * 1_000)

    assert isinstance(ticket.outcome, SendRefused) and ticket.outcome.error == RECORD_TOO_LARGE


def test_closing_sends_the_rest_and_refuses_what_was_blocked() -> None:
    story = small_buffer(linger_ms=60_000)
    story.warm_up()
    story.cluster.pause(1)
    for number in range(4):
        story.send(record(f"r{number}"))
    blocked = story.send(record("blocked"))
    story.host.do(story.producer.close)
    assert isinstance(blocked.outcome, SendRefused) and blocked.outcome.error == PRODUCER_CLOSED
    with pytest.raises(ProducerClosed):
        story.producer.send(TOPIC, b"x", now_ms=story.clock.now_ms)

    story.log.elect(2)
    story.settle()

    assert names(story) == ["warm", "r0", "r1", "r2", "r3"]


def test_an_abort_tells_what_was_on_the_wire_from_what_was_not() -> None:
    story = Story(linger_ms=0)
    story.warm_up()
    story.cluster.pause(1)
    story.send("on the wire")
    leaderless = story.host.client.metadata.topics["orders"]
    story.host.client.metadata.forget_brokers()
    story.host.client.metadata.topics["orders"] = leaderless
    story.send("in the buffer")

    story.host.do(story.producer.abort)

    assert story.outcomes() == {"on the wire": "unknown", "in the buffer": "refused"}
    assert story.producer.pending == 0


def test_two_producers_may_share_a_client() -> None:
    story = Story()
    config = producer_config({"bootstrap.servers": story.cluster.bootstrap, "linger.ms": 0})
    other = ProducerMachine(story.host.client, config)

    story.send("a")
    story.host.do(lambda now_ms: other.send(TOPIC, b"b", now_ms=now_ms))
    story.clock.run_until(lambda: story.producer.pending + other.pending == 0)

    assert sorted(story.log.values()) == ["a", "b"]
    assert len({header.producer_id for header in story.log.headers()}) == 2
