"""What retries do to the log: none, a second copy, a swapped order, or an end of patience."""

from __future__ import annotations

import pytest

from tests.process.evidence import produce_errors
from tests.process.producers import Failed, Ok
from tests.process.stage import Stage
from tests.process.target import IS_KAFKA
from tests.process.timelines import EVERY_CLIENT, Calls, Crew, StartCrew, StartProducer
from tests.process.waiting import PATIENCE_MS, wait_until
from tidelog.core.model.errors import ErrorCode

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("timelines"),
]

REQUEST_TIMEOUT_MS = 3_000
DELIVERY_TIMEOUT_MS = 12_000
"""Also what a cold Java needs for its first record."""


@pytest.mark.scenario("D3-PS1", "N29")
@pytest.mark.parametrize("copies", [0, 1])
@pytest.mark.parametrize("clients", EVERY_CLIENT)
def test_without_retries_the_record_in_flight_is_unknown(
    stage: Stage, start_crew: StartCrew, clients: tuple[str, ...], copies: int
) -> None:
    """retries=0, acks=1: the second record is on the leader and unanswered when SIGKILL comes. Its
    producer hears an error long before its request timeout, whether or not a follower has saved the
    record, and only for that one."""
    crew = start_crew(
        clients, acks="1", retries=0, enable_idempotence=False, request_timeout_ms=2 * PATIENCE_MS
    )
    topic = stage.new_topic(*[(1, 2, 3)] * len(clients))
    crew.send(topic, "first").wait_for(Ok(0))
    for partition in crew.partitions.values():
        for broker in (2, 3):
            stage.wait_for_end(topic, 1, of=broker, partition=partition)
    holds = [] if copies else [stage.hold_back(each, leader=1) for each in (2, 3)]
    holds.append(stage.hold_answers(1, "second"))
    second = crew.send(topic, "second")
    for partition in crew.partitions.values():
        for broker in (1, 2, 3) if copies else (1,):
            stage.wait_for_end(topic, 2, of=broker, partition=partition)
    wait_until(lambda: len(holds[-1].held) == len(clients), "the answers that will be lost")

    stage.kill(1)
    for hold in holds:
        hold.lose()

    assert all(isinstance(told, Failed) for told in second.wait().values())
    for partition in crew.partitions.values():
        stage.wait_for(topic, lambda it: it.leader == 2, partition=partition, via=2)
    crew.send(topic, "third").wait_for(Ok(1 + copies))
    expected = crew.each("first", *["second"] * copies, "third")
    wait_until(lambda: crew.stored(stage, topic, leader=2) == expected, f"{expected} to be read")
    assert len(stage.asked_for(1, "second")) == len(clients)
    assert stage.asked_for(2, "second") == []


@pytest.mark.scenario("D3-PS2b", "N28")
@pytest.mark.parametrize("idempotent", [False, True], ids=["plain", "idempotent"])
@pytest.mark.parametrize("clients", EVERY_CLIENT)
def test_a_lost_answer_and_its_retry(
    stage: Stage, start_crew: StartCrew, clients: tuple[str, ...], idempotent: bool
) -> None:
    """The record is stored on all brokers, its answer is lost with the connection, and it is sent
    again: two copies, or with idempotence one that is found again."""
    crew = start_crew(clients, acks="all", enable_idempotence=idempotent)
    topic = stage.new_topic(*[(1, 2, 3)] * len(clients))
    crew.send(topic, "before").wait_for(Ok(0))
    hold = stage.hold_answers(1, "order")
    calls = crew.send(topic, "order")
    wait_until(lambda: len(hold.held) == len(clients), "the answers that will be lost")

    hold.lose()

    calls.wait_for(Ok(1 if idempotent else 2))
    crew.send(topic, "after").wait_for(Ok(2 if idempotent else 3))
    copies = ["order"] if idempotent else ["order", "order"]
    assert crew.stored(stage, topic, leader=1) == crew.each("before", *copies, "after")
    assert len(stage.asked_for(1, "order")) == 2 * len(clients)


@pytest.mark.scenario("D3-PS2c", "N28", "D1-Q2")
@pytest.mark.parametrize("clients", EVERY_CLIENT)
def test_the_first_of_two_in_flight_is_refused_once(
    stage: Stage, start_crew: StartCrew, clients: tuple[str, ...]
) -> None:
    """Too few replicas are in sync for the first record, but enough for the second that is already
    under way when the refusal arrives: the retry comes after it. With idempotence the leader
    refuses the second too, since one is missing before it, and the order is kept."""
    plain = start_crew(clients, enable_idempotence=False, max_in_flight=5)
    idempotent = start_crew(clients, enable_idempotence=True, max_in_flight=5)
    swapped, kept = (
        stage.new_topic(*[(1, 2, 3)] * len(clients), min_insync_replicas="3") for _ in range(2)
    )
    plain.send(swapped, "before").wait_for(Ok(0))
    idempotent.send(kept, "before").wait_for(Ok(0))
    stage.kill(3)
    for topic in (swapped, kept):
        for partition in range(len(clients)):
            stage.wait_for(topic, lambda it: it.isr == [1, 2], partition=partition, via=1)

    hold = stage.hold_answers(1, "first")
    first = [plain.send(swapped, "first"), idempotent.send(kept, "first")]
    wait_until(lambda: len(hold.held) == 2 * len(clients), "the refusals")
    for topic in (swapped, kept):
        stage.alter_topic(topic, "min.insync.replicas", "2", leader=1)
    second = [plain.send(swapped, "second"), idempotent.send(kept, "second")]
    # kafka-python has one batch of a partition in flight if it is idempotent.
    waiting = 1 if "kafka-python" in clients else 0
    wait_until(
        lambda: len(stage.asked_for(1, "second")) == 2 * len(clients) - waiting, "the second ones"
    )
    hold.release()

    for calls, place in zip([*first, *second], [2, 1, 1, 2], strict=True):
        calls.wait_for(Ok(place))
    assert plain.stored(stage, swapped, leader=1) == plain.each("before", "second", "first")
    assert idempotent.stored(stage, kept, leader=1) == idempotent.each("before", "first", "second")


@pytest.mark.scenario("D3-PS2d", "D3-Q6")
@pytest.mark.parametrize("clients", EVERY_CLIENT)
@pytest.mark.parametrize(
    "how",
    [
        "not-stored",
        pytest.param("stored", marks=pytest.mark.long),
        pytest.param("silent", marks=pytest.mark.long),
    ],
)
def test_the_delivery_timeout_bounds_it_all(
    stage: Stage, start_producer: StartProducer, clients: tuple[str, ...], how: str
) -> None:
    """The only replica is gone for longer than the producer's patience: an error, and nobody says
    whether the record is stored. When the leader is back, later records flow: an idempotent
    producer takes a new epoch where a gap would be refused, and there is no endless 45."""
    crew = Crew(
        {
            client: start_producer(
                client,
                # Its idempotent producer never gets a new id after a batch has expired (3.0.12).
                enable_idempotence=client != "kafka-python",
                request_timeout_ms=REQUEST_TIMEOUT_MS,
                delivery_timeout_ms=DELIVERY_TIMEOUT_MS,
            )
            for client in clients
        }
    )
    topic = stage.new_topic(*[(2,)] * len(clients))
    crew.send(topic, "before").wait_for(Ok(0))
    late = _send_to_a_leader_that_goes(stage, crew, topic, how)
    assert all(isinstance(told, Failed) for told in late.wait().values())

    stage.heal()
    for partition in crew.partitions.values():
        stage.wait_for(topic, lambda it: it.leader == 2, partition=partition, via=1)
    crew.send(topic, "after").wait()
    crew.send(topic, "end").wait()

    for name, values in crew.stored(stage, topic, leader=2).items():
        copies = {"stored": [1], "not-stored": [0], "silent": [0, 1]}[how]
        assert values.count("late") in copies
        assert [value for value in values if value != "late"] == ["before", "after", "end"]
        partition = crew.partitions[name]
        errors = produce_errors(stage, 2, "after", partition=partition)
        if how == "silent":  # who overslept its session asks the controller before it leads again
            errors = [code for code in errors if code != ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert len(errors) <= 2, "refused at most once"
        headers = stage.headers(topic, of=2, partition=partition)
        before, *_, after, end = [(each.producer_id, each.producer_epoch) for each in headers]
        if name in ("java", "tidelog") or (name == "librdkafka" and how == "not-stored"):
            assert before != after == end


def _send_to_a_leader_that_goes(stage: Stage, crew: Crew, topic: str, how: str) -> Calls:
    """With the record in its log, or in its sockets for ever, or until it wakes up."""
    if how == "stored":
        hold = stage.hold_answers(2, "late")
        late = crew.send(topic, "late")
        wait_until(lambda: len(hold.held) == len(crew.producers), "the answers that will be lost")
        stage.kill(2)
        hold.lose()
        return late
    stage.freeze(2)
    late = crew.send(topic, "late")
    everybody = set(crew.partitions.values())
    wait_until(lambda: set(stage.asked_for(2, "late")) == everybody, "the requests")
    if how == "not-stored":
        stage.kill(2)
    return late
