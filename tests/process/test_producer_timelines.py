"""Document 3's producer timelines with real clients: an answer, a kill, a silence, a retry."""

from __future__ import annotations

import time
from functools import partial

import pytest

from tests.process.producers import Ok
from tests.process.proxy import FETCH, is_produce
from tests.process.stage import SESSION_S, Stage, produced, read_request
from tests.process.target import IS_KAFKA
from tests.process.timelines import EVERY_CLIENT, StartCrew
from tests.process.waiting import PATIENCE_MS, wait_until
from tidelog.core.wire.messages.api_01_fetch import FetchRequest

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("timelines"),
]

SHORT_REQUEST_TIMEOUT_S = SESSION_S + 1
"""As in document 3 longer than the session of the leader that falls silent."""


class Traffic:
    """What the leader's proxy saw, in order, of one partition."""

    def __init__(self, stage: Stage, topic: str, partition: int, *, leader: int) -> None:
        self._journal = stage.proxies[leader].journal
        self._topic_id = stage.topic_id(topic)
        self._partition = partition

    def answers(self, value: str) -> list[int]:
        """When a Produce of this value was answered."""
        return [
            at
            for at, (what, seen) in enumerate(list(self._journal))
            if what == "answered"
            and is_produce(seen)
            and produced(seen) == (self._partition, [value])
        ]

    def fetches(self, follower: int, offset: int) -> list[int]:
        """When a follower asked for this offset."""
        return [
            at
            for at, (what, seen) in enumerate(list(self._journal))
            if what == "asked"
            and seen.api_key == FETCH
            and seen.client_id == f"node-{follower}"
            and self._asks_for(read_request(seen, FetchRequest), offset)
        ]

    def _asks_for(self, request: FetchRequest, offset: int) -> bool:
        return any(
            asked.partition == self._partition and asked.fetch_offset == offset
            for topic in request.topics
            if topic.topic_id == self._topic_id
            for asked in topic.partitions
        )


@pytest.mark.scenario("D3-P1", "N3")
@pytest.mark.parametrize("clients", EVERY_CLIENT)
def test_an_answer_waits_for_the_next_fetch_of_every_follower(
    stage: Stage, start_crew: StartCrew, clients: tuple[str, ...]
) -> None:
    """acks=all with broker 3 held back: 1 and 2 have the record, and nobody hears of it before
    3 has asked for what comes after it."""
    crew = start_crew(clients, acks="all")
    topic = stage.new_topic(*[(1, 2, 3)] * len(clients))
    crew.send(topic, "before").wait_for(Ok(0))
    traffic = [Traffic(stage, topic, each, leader=1) for each in crew.partitions.values()]

    hold = stage.hold_back(3, leader=1)
    calls = crew.send(topic, "order")
    for each in traffic:
        wait_until(partial(each.fetches, 2, 2), "2's next fetch, which is its ack")
    assert calls.all_are(None)

    hold.release()
    calls.wait_for(Ok(1))
    for each in traffic:
        [answered] = each.answers("order")
        assert min(each.fetches(2, 2)) < answered
        assert min(each.fetches(3, 2)) < answered
    assert crew.stored(stage, topic, leader=1) == crew.each("before", "order")


@pytest.mark.scenario("D3-P2a", "D3-PS2a", "D3-PS3a", "D3-PS3b", "N13", "N18")
@pytest.mark.parametrize("has_the_copy", [True, False], ids=["copied", "not-copied"])
@pytest.mark.parametrize("clients", EVERY_CLIENT)
def test_a_killed_leader_costs_an_election_and_one_retry(
    stage: Stage, start_crew: StartCrew, clients: tuple[str, ...], has_the_copy: bool
) -> None:
    """The record is on the leader, unanswered, when SIGKILL comes. The retry goes to broker 2 long
    before the request timeout. If 2 had it, it is found again with its old leader epoch; if not, it
    is written anew: one copy at the same offset either way."""
    crew = start_crew(clients, enable_idempotence=True, request_timeout_ms=2 * PATIENCE_MS)
    topic = stage.new_topic(*[(1, 2, 3)] * len(clients))
    crew.send(topic, "before").wait_for(Ok(0))
    holds = [stage.hold_back(each, leader=1) for each in ((3,) if has_the_copy else (2, 3))]
    calls = crew.send(topic, "order")
    for partition in crew.partitions.values():
        for broker in (1, 2) if has_the_copy else (1,):
            stage.wait_for_end(topic, 2, of=broker, partition=partition)
    assert calls.all_are(None)

    stage.kill(1)
    for hold in holds:
        hold.lose()

    calls.wait_for(Ok(1))
    assert crew.stored(stage, topic, leader=2) == crew.each("before", "order")
    for partition in crew.partitions.values():
        assert stage.asked_for(1, "order").count(partition) == 1
        assert partition in stage.asked_for(2, "order")
        before, order = stage.headers(topic, of=2, partition=partition)
        assert order.producer_id == before.producer_id
        assert (before.base_sequence, order.base_sequence) == (0, 1)
        assert order.leader_epoch == (0 if has_the_copy else 1)


@pytest.mark.scenario("D3-P2b", "D3-PS2a", "N13")
@pytest.mark.parametrize("clients", EVERY_CLIENT)
def test_a_silent_leader_costs_the_request_timeout(
    stage: Stage, start_crew: StartCrew, clients: tuple[str, ...]
) -> None:
    """SIGSTOP: nothing says that the leader is gone until the client's own patience ends. What the
    old leader finds in its sockets when it wakes up is no second copy."""
    crew = start_crew(clients, request_timeout_ms=1_000 * SHORT_REQUEST_TIMEOUT_S)
    old, new, third = stage.controller_last()
    topic = stage.new_topic(*[(old, new, third)] * len(clients))
    crew.send(topic, "before").wait_for(Ok(0))

    stage.freeze(old)
    started_s = time.monotonic()
    calls = crew.send(topic, "order")
    calls.wait_for(Ok(1))

    assert time.monotonic() - started_s >= SHORT_REQUEST_TIMEOUT_S
    for partition in crew.partitions.values():
        assert partition in stage.asked_for(old, "order")
        assert partition in stage.asked_for(new, "order")
    stage.wake(old)
    for partition in crew.partitions.values():
        stage.cluster.wait_until_in_sync(topic, partition)
        copies = [stage.headers(topic, of=broker, partition=partition) for broker in (1, 2, 3)]
        assert copies[0] == copies[1] == copies[2]
    assert crew.stored(stage, topic, leader=new) == crew.each("before", "order")
