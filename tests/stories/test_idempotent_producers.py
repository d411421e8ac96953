"""What idempotent producers are promised, on a single broker."""

from __future__ import annotations

import pytest

from tidelog.client.partition_requests import produce_answer
from tidelog.core.model.errors import ErrorCode
from tidelog.core.model.ids import ProducerIdAndEpoch
from tidelog.worlds.simulator import requests
from tidelog.worlds.simulator.client import CallFailed
from tidelog.worlds.simulator.single_broker import (
    BROKER,
    CLIENT,
    ProduceOutcome,
    SingleBroker,
)

NONE = ErrorCode.NONE
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.scenario("D4-I1")
def test_without_idempotence_a_lost_answer_and_its_retry_give_two_copies() -> None:
    stage = SingleBroker()
    orders = stage.create_topic("orders")
    m1 = requests.produce(orders, 0, stage.batch("M1"), acks=-1)

    stage.network.cut(BROKER, CLIENT)
    assert isinstance(stage.ask(m1, 11), CallFailed)
    stage.network.heal_all()
    retried = produce_answer(stage.answer(m1, 11))

    assert (retried.error_code, retried.base_offset) == (NONE, 1)
    assert stage.read(orders).payloads == ["M1", "M1"]


@pytest.mark.scenario("D4-I2")
def test_with_idempotence_the_same_lost_answer_gives_one_copy() -> None:
    stage = SingleBroker()
    orders = stage.create_topic("orders")
    batch = stage.batch("M1", producer=stage.new_producer(), sequence=0)
    m1 = requests.produce(orders, 0, batch, acks=-1)

    stage.network.cut(BROKER, CLIENT)
    assert isinstance(stage.ask(m1, 11), CallFailed)
    stage.network.heal_all()
    retried = produce_answer(stage.answer(m1, 11))

    assert (retried.error_code, retried.base_offset) == (NONE, 0)
    assert stage.read(orders).payloads == ["M1"]


@pytest.mark.scenario("D4-I2")
@pytest.mark.parametrize("end", ["killed", "power lost", "stopped"])
def test_a_retry_over_a_restart_is_still_recognised(end: str) -> None:
    stage = SingleBroker(fsync="group")
    orders = stage.create_topic("orders")
    producer = stage.new_producer()
    first = stage.produce(orders, "M1", "M2", producer=producer, sequence=0)

    restart = {
        "killed": stage.restart,
        "power lost": stage.lose_power_and_restart,
        "stopped": stage.restart_cleanly,
    }
    restart[end]()

    again = stage.produce(orders, "M1", "M2", producer=producer, sequence=0)
    assert again == first == ProduceOutcome(NONE, 0)
    assert stage.read(orders).payloads == ["M1", "M2"]


@pytest.mark.scenario("D4-I3", "N23")
def test_no_producer_id_is_given_twice_over_any_number_of_restarts() -> None:
    stage = SingleBroker()
    given = []
    for restart in [stage.restart, stage.restart_cleanly, stage.lose_power_and_restart] * 3:
        given += [stage.new_producer() for _ in range(5)]
        restart()
    given += [stage.new_producer() for _ in range(5)]

    assert len(given) == len({producer.producer_id for producer in given}) == 50
    assert all(
        0 <= producer.producer_id < 2**63 and producer.producer_epoch == 0 for producer in given
    )


@pytest.mark.scenario("D4-I6")
def test_producer_500_numbers_its_records_0_1_2() -> None:
    stage = SingleBroker()
    orders = stage.create_topic("orders")
    for sequence, message in enumerate(("M1", "M2", "M3")):
        stage.produce(orders, message, producer=ProducerIdAndEpoch(500, 0), sequence=sequence)

    numbered = [record.numbered for record in stage.read(orders).records]

    assert numbered == [(500, 0, 0), (500, 0, 1), (500, 0, 2)]


@pytest.mark.scenario("D4-I7", "N18")
def test_a_known_sequence_is_ignored_a_new_one_appended_and_a_gap_refused() -> None:
    stage = SingleBroker()
    orders = stage.create_topic("orders")
    p500 = ProducerIdAndEpoch(500, 0)
    for sequence, message in enumerate(("M1", "M2", "M3")):
        assert stage.produce(orders, message, producer=p500, sequence=sequence).error == NONE

    assert stage.produce(orders, "M2", producer=p500, sequence=1) == ProduceOutcome(NONE, 1)
    assert stage.produce(orders, "M5", producer=p500, sequence=4).error == OUT_OF_ORDER
    assert stage.read(orders).payloads == ["M1", "M2", "M3"]
    assert stage.produce(orders, "M4", producer=p500, sequence=3) == ProduceOutcome(NONE, 3)


@pytest.mark.scenario("D4-I7", "N18", "X-26")
def test_five_batches_are_remembered_and_an_older_retry_is_out_of_order() -> None:
    stage = SingleBroker()
    orders = stage.create_topic("orders")
    p500 = ProducerIdAndEpoch(500, 0)
    for sequence in range(7):
        stage.produce(orders, f"M{sequence}", producer=p500, sequence=sequence)

    for sequence in range(2, 7):
        retried = stage.produce(orders, f"M{sequence}", producer=p500, sequence=sequence)
        assert retried == ProduceOutcome(NONE, sequence)
    too_old = stage.produce(orders, "M1", producer=p500, sequence=1)

    assert too_old.error == OUT_OF_ORDER
    assert stage.end_offset(orders) == 7


@pytest.mark.scenario("X-26")
def test_the_same_sequences_with_other_bytes_are_answered_as_a_duplicate() -> None:
    """Clients pack a batch anew when they retry it, so its bytes cannot decide."""
    stage = SingleBroker()
    orders = stage.create_topic("orders")
    p500 = ProducerIdAndEpoch(500, 0)
    stage.produce(orders, "M0", producer=p500, sequence=0)

    other = stage.produce(orders, "something else", producer=p500, sequence=0)

    assert other == ProduceOutcome(NONE, 0)
    assert stage.read(orders).payloads == ["M0"]


@pytest.mark.scenario("D4-I8")
@pytest.mark.parametrize("seed", range(5))
def test_sequences_of_a_partition_are_unique_and_ordered_whatever_is_sent_again(seed: int) -> None:
    stage = SingleBroker(seed=seed, fsync="group")
    orders = stage.create_topic("orders", partitions=2, internal_segment_bytes="400")
    producer = stage.new_producer()
    random = stage.world.random_for("story")
    sent = [0, 0]
    oldest = [0, 0]  # a producer snapshot remembers the newest batch only, as Kafka's does
    for _ in range(40):
        index = random.randrange(2)
        sequence = max(oldest[index], sent[index] - random.randrange(6), 0)
        told = stage.produce(
            orders, f"{index}.{sequence}", index=index, producer=producer, sequence=sequence
        )
        assert told == ProduceOutcome(NONE, sequence)
        sent[index] = max(sent[index], sequence + 1)
        if random.random() < 0.2:
            random.choice((stage.restart, stage.lose_power_and_restart, stage.restart_cleanly))()
            oldest = [max(0, count - 1) for count in sent]

    for index in (0, 1):
        numbered = [record.numbered for record in stage.read(orders, index=index).records]
        assert numbered == [(producer.producer_id, 0, sequence) for sequence in range(sent[index])]


@pytest.mark.scenario("X-22")
def test_a_producer_whose_records_are_all_deleted_goes_on_at_any_sequence() -> None:
    stage = SingleBroker()
    orders = stage.create_topic("orders", internal_segment_bytes="200", file_delete_delay_ms="0")
    p500 = ProducerIdAndEpoch(500, 0)
    for sequence in range(8):
        stage.produce(orders, f"M{sequence}", producer=p500, sequence=sequence)

    stage.delete_records(orders, 8)
    stage.world.run_for(5_000)
    stage.restart()

    told = stage.produce(orders, "M8", producer=p500, sequence=8)
    assert told == ProduceOutcome(NONE, 8)
    assert stage.produce(orders, "M8", producer=p500, sequence=8) == ProduceOutcome(NONE, 8)
    assert stage.read(orders, offset=8).payloads == ["M8"]


@pytest.mark.scenario("X-22")
def test_a_producer_that_was_silent_too_long_goes_on_at_any_sequence() -> None:
    stage = SingleBroker(producer_id_expiration_ms="2000")
    orders = stage.create_topic("orders")
    p500 = ProducerIdAndEpoch(500, 0)
    stage.produce(orders, "M0", producer=p500, sequence=0)
    assert [state.producer_id for state in stage.producers(orders)] == [500]

    stage.world.run_for(5_000)
    assert stage.producers(orders) == []

    assert stage.produce(orders, "M7", producer=p500, sequence=7) == ProduceOutcome(NONE, 1)
    assert stage.produce(orders, "M7", producer=p500, sequence=7) == ProduceOutcome(NONE, 1)
    assert stage.produce(orders, "M9", producer=p500, sequence=9).error == OUT_OF_ORDER


@pytest.mark.scenario("X-23", "N24")
def test_sequences_wrap_inside_a_batch_and_its_retry_is_a_duplicate() -> None:
    stage = SingleBroker()
    orders = stage.create_topic("orders")
    p500 = ProducerIdAndEpoch(500, 0)
    twenty = [f"M{number}" for number in range(20)]
    first = stage.produce(orders, *twenty, producer=p500, sequence=2_147_483_640)

    assert stage.producers(orders)[0].last_sequence == 11
    again = stage.produce(orders, *twenty, producer=p500, sequence=2_147_483_640)
    assert again == first == ProduceOutcome(NONE, 0)
    assert stage.produce(orders, "M21", producer=p500, sequence=13).error == OUT_OF_ORDER
    assert stage.produce(orders, "M20", producer=p500, sequence=12) == ProduceOutcome(NONE, 20)
    assert stage.read(orders).payloads == [*twenty, "M20"]
