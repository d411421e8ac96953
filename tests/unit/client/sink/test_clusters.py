"""Clusters that a sink can work with, or cannot: versions, settings, topics, coordinators."""

from __future__ import annotations

import pytest

from tests.unit.client.sink.stage import P0, ROWS, TOPIC, Stage
from tidelog.client.sink import driver as protocol
from tidelog.client.sink.errors import (
    ClusterUnfit,
    Fenced,
    SinkRefused,
    TransactionTimedOut,
)
from tidelog.core.wire.messages.api_22_init_producer_id import InitProducerIdRequest


def test_a_cluster_without_transactions_is_refused_in_one_line() -> None:
    stage = Stage()
    del stage.cluster.api_versions[24]

    with pytest.raises(ClusterUnfit, match=r"no transactions: .* Apache Kafka 3\.6") as raised:
        stage.run().take_over()

    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("value", ["false", None])
def test_brokers_that_do_not_verify_partitions_are_refused(value: str | None) -> None:
    stage = Stage()
    name = "transaction.partition.verification.enable"
    if value is None:
        del stage.coordinator.settings[name]
    else:
        stage.coordinator.settings[name] = value

    with pytest.raises(ClusterUnfit, match=name):
        stage.run().take_over()


def test_an_old_kafka_is_refused_by_the_versions_that_it_speaks() -> None:
    stage = Stage()
    stage.cluster.api_versions[9] = (0, 7)

    with pytest.raises(ClusterUnfit, match="no version 8 to 9 of OffsetFetch"):
        stage.run().take_over()


def test_a_topic_that_does_not_exist_is_named() -> None:
    stage = Stage()

    with pytest.raises(SinkRefused, match="topic nowhere does not exist"):
        stage.run(topics=(TOPIC, "nowhere")).take_over()


def test_a_transaction_timeout_above_the_brokers_is_refused_before_anything() -> None:
    stage = Stage()

    with pytest.raises(SinkRefused, match=r"transaction\.max\.timeout\.ms=900000"):
        stage.run(transaction_timeout_ms=900_001).take_over()

    assert stage.asked(InitProducerIdRequest) == 0


def test_without_a_wish_the_timeout_is_ten_minutes_or_the_brokers_maximum() -> None:
    stage = Stage()
    assert stage.run().take_over().ticket(0).transaction_timeout_ms == 600_000
    stage.coordinator.settings["transaction.max.timeout.ms"] = "30000"

    run = stage.run(name="B").take_over()

    assert run.ticket(0).transaction_timeout_ms == 30_000


def test_a_batch_that_outlived_its_transaction_says_so() -> None:
    stage = Stage()
    run = stage.run(transaction_timeout_ms=10_000).take_over()
    receipts = run.write(run.ticket(0), ROWS)
    stage.cluster.clock.run_for(10_000)
    stage.coordinator.fence()

    with pytest.raises(TransactionTimedOut, match=r"transaction\.timeout\.ms is 10000"):
        run.commit(receipts)

    assert stage.committed() == []


def test_a_task_that_is_fenced_late_is_explained_by_the_timeout() -> None:
    stage = Stage()
    run = stage.run(transaction_timeout_ms=10_000).take_over()
    run.ticket(0)
    stage.cluster.clock.run_for(10_000)

    with pytest.raises(TransactionTimedOut, match="47; the batch was open for"):
        run.lead(run.driver.give_up(Fenced("47"), now_ms=run.host.now_ms))

    assert run.driver.open is None


def test_coordinators_that_move_are_looked_up_again() -> None:
    stage = Stage()
    run = stage.run().take_over()
    stage.coordinator.nodes = {0: 1, 1: 2}

    assert run.publish(0, ROWS)

    stage.coordinator.nodes = {0: 3, 1: 3}
    stage.cluster.kill(2)
    assert run.publish(1, {0: ["e"]})
    assert stage.committed() == ["a", "b", "c", "d", "e"]


def test_the_age_of_the_open_transaction_is_told() -> None:
    stage = Stage()
    run = stage.run().take_over()
    assert run.driver.open_for_ms(run.host.now_ms) is None
    run.ticket(0)

    stage.cluster.clock.run_for(1_234)

    assert run.driver.open_for_ms(run.host.now_ms) == 1_234


def test_a_marker_is_fresh_for_shorter_than_a_takeover_is_contested() -> None:
    assert protocol.FRESH_MS < protocol.CONTEST_MS


def test_the_marker_stands_at_the_first_topic() -> None:
    stage = Stage()
    stage.cluster.create("aaa")
    stage.run(topics=(TOPIC, "aaa")).take_over()

    assert stage.coordinator.marker is not None
    assert str(stage.coordinator.marker[0]) == "aaa-0"
    stage.run(name="B").take_over()
    assert str(stage.coordinator.marker[0]) == "aaa-0"
    assert P0.topic == TOPIC
