"""Brokers that die while a sink publishes: coordinators, leaders, the controller."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from bench.clusters import ThreeKafkas
from tests.kafka import KafkaCluster, unavailable_reason
from tests.kafka.broker import START_TIMEOUT_S
from tests.kafka.tools import QUICK_START
from tests.process.waiting import wait_until
from tests.process.wire import WireClient
from tests.spark.conftest import KAFKA_SETTINGS
from tests.spark.sink_parts import Sink, rows_of, values_of
from tests.spark.topics import NewTopic
from tidelog.client.shells.sink_driver import SinkDriver
from tidelog.client.sink.errors import SinkError
from tidelog.client.sink.options import GROUP_PREFIX

pytestmark = [pytest.mark.java, pytest.mark.long]

GROUP_KEY, TRANSACTION_KEY = 0, 1


@pytest.fixture(scope="module")
def mortals() -> Iterator[KafkaCluster]:
    """A cluster of our own, since we kill its brokers."""
    if reason := unavailable_reason():
        pytest.skip(f"Apache Kafka cannot run here: {reason}")
    with KafkaCluster(
        brokers=3, settings=KAFKA_SETTINGS, heap="256m", java_options=QUICK_START
    ) as kafka:
        ThreeKafkas(kafka).wait_until_formed()
        yield kafka


def coordinator(kafka: KafkaCluster, sink: Sink, key_type: int) -> int:
    with WireClient(next(node.address for node in kafka.nodes if node.is_running)) as wire:

        def known() -> int:
            (found,) = wire.ask(
                "FindCoordinator",
                4,
                key_type=key_type,
                coordinator_keys=[GROUP_PREFIX + sink.sink_id],
            ).coordinators
            return 0 if found.error_code else int(found.node_id)

        return wait_until(known, f"the coordinator of {sink.sink_id}")


def leader(kafka: KafkaCluster, sink: Sink, partition: int) -> int:
    return int(ThreeKafkas(kafka).partitions(sink.topic)[partition].leader_id)


def victim(kafka: KafkaCluster, sink: Sink, who: str) -> int:
    match who:
        case "transaction coordinator":
            return coordinator(kafka, sink, TRANSACTION_KEY)
        case "group coordinator":
            return coordinator(kafka, sink, GROUP_KEY)
        case "controller":
            return ThreeKafkas(kafka).controller() or 1
    return leader(kafka, sink, 0)


def publish_until_done(sink: Sink, driver: SinkDriver, batch_id: int) -> None:
    """A batch that was aborted for want of answers is begun again, as a pipeline does."""
    for _ in range(5):
        try:
            sink.publish(driver, batch_id, rows_of(batch_id))
            return
        except SinkError as error:
            if error.is_final:
                raise
    raise AssertionError(f"batch {batch_id} was aborted five times")


@pytest.mark.parametrize(
    ("who", "moment"),
    [
        ("transaction coordinator", "begun"),
        ("transaction coordinator", "written"),
        ("group coordinator", "written"),
        ("leader", "begun"),
        ("controller", "written"),
    ],
)
def test_a_broker_that_dies_in_a_batch_costs_time_and_nothing_else(
    mortals: KafkaCluster, new_topic: NewTopic, who: str, moment: str
) -> None:
    topic = new_topic(mortals, partitions=2, min_insync_replicas="2")
    sink = Sink(mortals.bootstrap_servers, topic)
    with sink.driver() as driver:
        driver.take_over()
        assert sink.publish(driver, 0, rows_of(0))
        ticket = sink.ticket(driver, 1)
        receipts = sink.write(ticket, rows_of(1)) if moment == "written" else None
        node = mortals.nodes[victim(mortals, sink, who) - 1]

        node.kill()

        try:
            driver.commit(sink.write(ticket, rows_of(1)) if receipts is None else receipts)
        except SinkError as error:
            if error.is_final:
                raise
            publish_until_done(sink, driver, 1)
        publish_until_done(sink, driver, 2)
        node.start()
        node.wait_until_serving(time.monotonic() + START_TIMEOUT_S)
        ThreeKafkas(mortals).wait_until_in_sync(topic)
        publish_until_done(sink, driver, 3)

    assert sink.committed() == values_of(0, 1, 2, 3)
