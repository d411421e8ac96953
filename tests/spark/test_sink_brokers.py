"""Brokers that die while a sink publishes: coordinators, leaders, the controller."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest

import tidelog
from bench.clusters import Cluster, ThreeKafkas, TidelogCluster
from tests.kafka import KafkaCluster, unavailable_reason
from tests.kafka.tools import QUICK_START
from tests.process.waiting import wait_until
from tests.spark.brokers import KAFKA, TIDELOG, Brokers
from tests.spark.conftest import KAFKA_SETTINGS
from tests.spark.sink_parts import Sink, rows_of, values_of
from tests.spark.topics import NewTopic
from tidelog.client.shells.sink_driver import SinkDriver
from tidelog.client.sink.errors import SinkError
from tidelog.client.sink.options import GROUP_PREFIX

pytestmark = pytest.mark.long

GROUP_KEY, TRANSACTION_KEY = 0, 1


class Mortals(NamedTuple):
    """Brokers that may be killed, and the handles for it."""

    brokers: Brokers
    handles: Cluster


@pytest.fixture(scope="module", params=[KAFKA, TIDELOG])
def mortals(request: pytest.FixtureRequest) -> Iterator[Mortals]:
    """A cluster of our own, since we kill its brokers."""
    if request.param == "tidelog":
        with tidelog.Cluster(brokers=3, settings=KAFKA_SETTINGS, faults=False) as ours:
            yield Mortals(ours, TidelogCluster(ours))
        return
    if reason := unavailable_reason():
        pytest.skip(f"Apache Kafka cannot run here: {reason}")
    with KafkaCluster(
        brokers=3, settings=KAFKA_SETTINGS, heap="256m", java_options=QUICK_START
    ) as kafka:
        handles = ThreeKafkas(kafka)
        handles.wait_until_formed()
        yield Mortals(kafka, handles)


def coordinator(handles: Cluster, sink: Sink, key_type: int) -> int:
    def known() -> int:
        answer = handles.ask(
            "FindCoordinator",
            4,
            key_type=key_type,
            coordinator_keys=[GROUP_PREFIX + sink.sink_id],
        )
        if answer is None or answer.coordinators[0].error_code:
            return 0
        return int(answer.coordinators[0].node_id)

    return wait_until(known, f"the coordinator of {sink.sink_id}")


def victim(handles: Cluster, sink: Sink, who: str) -> int:
    match who:
        case "transaction coordinator":
            return coordinator(handles, sink, TRANSACTION_KEY)
        case "group coordinator":
            return coordinator(handles, sink, GROUP_KEY)
        case "controller":
            return wait_until(handles.controller, "a controller")
    return int(handles.partitions(sink.topic)[0].leader_id)


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
    mortals: Mortals, new_topic: NewTopic, who: str, moment: str
) -> None:
    handles = mortals.handles
    topic = new_topic(mortals.brokers, partitions=2, min_insync_replicas="2")
    sink = Sink(mortals.brokers.bootstrap_servers, topic)
    with sink.driver() as driver:
        driver.take_over()
        assert sink.publish(driver, 0, rows_of(0))
        ticket = sink.ticket(driver, 1)
        receipts = sink.write(ticket, rows_of(1)) if moment == "written" else None
        broker_id = victim(handles, sink, who)

        handles.kill(broker_id)

        try:
            driver.commit(sink.write(ticket, rows_of(1)) if receipts is None else receipts)
        except SinkError as error:
            if error.is_final:
                raise
            publish_until_done(sink, driver, 1)
        publish_until_done(sink, driver, 2)
        handles.start(broker_id)
        handles.wait_until_in_sync(topic)
        publish_until_done(sink, driver, 3)

    assert sink.committed() == values_of(0, 1, 2, 3)
