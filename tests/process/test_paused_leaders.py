"""Leaders are stopped for longer than their session under acks=1 load, and go on: they ask first.

With acks=1 a record that its leader acknowledged just before it was stopped may be lost, as ever:
nobody else has it. What is acknowledged after it goes on must be there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.campaign_extent import CampaignExtent
from tests.process.broker import Setting
from tests.process.campaign import Campaign, create_topic
from tests.process.cluster import ProcessCluster
from tests.process.evidence import all_events
from tests.process.load import PARTITIONS, Load
from tests.process.producers import Ok, ProducerOptions, TimelineProducer
from tests.process.target import IS_KAFKA
from tests.process.timelines import make_producer
from tests.process.verdicts import final_log
from tests.process.waiting import wait_until
from tests.process.wire import batches_on_disk

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.long,
]

SESSION: dict[str, Setting] = {
    "broker.heartbeat.interval.ms": 2_000,
    "broker.session.timeout.ms": 9_000,
}
"""What a cluster has by itself, and not the patience that other tests have."""
HASTY = ProducerOptions(acks="1", enable_idempotence=False)
PAUSES_S = (10.0, 11.5, 13.0, 14.0, 15.0)
PARTS = 2
"""A run has every second of them, but for `--whole-campaigns`."""
RECORDS = 1_000


class HastyCampaign(Campaign):
    """Loads with acks=1, what they were told when, and what became of it."""

    def acknowledged(self) -> set[str]:
        return {
            call.value
            for load in self.loads
            for calls in load.calls.values()
            for call in list(calls)
            if isinstance(call.outcome, Ok)
        }

    def unanswered(self, topic: str, partition: int) -> int:
        load = next(load for load in self.loads if load.topic == topic)
        return sum(call.outcome is None for call in list(load.calls[partition]))

    def settle(self) -> None:
        """Everything is answered, and every replica has all of it: a leader may be moved."""
        for load in self.loads:
            load.wait_for(1)
        self.wait_until_whole()
        for topic, partition in self.places:

            def is_copied(topic: str = topic, partition: int = partition) -> bool:
                copies = [
                    batches_on_disk(node.data_path, topic, partition=partition)
                    for node in self.cluster.nodes.values()
                ]
                return copies[0] == copies[1] == copies[2]

            wait_until(is_copied, f"equal replicas of {topic}-{partition}")

    def stored(self) -> set[str]:
        found: set[str] = set()
        for topic, partition in self.places:
            leader = self.cluster.nodes[self.leader(topic, partition)]
            final = final_log(leader.address, topic, partition=partition, at_us=10**12)
            found |= {record.payload for record in final.records}
        return found


@contextmanager
def hasty_campaign(
    directory: Path, clients: tuple[str, ...], request: pytest.FixtureRequest
) -> Iterator[HastyCampaign]:
    producers: list[TimelineProducer] = []
    loads: list[Load] = []
    with ProcessCluster(directory=directory, settings=SESSION) as cluster:
        try:
            for client in clients:
                create_topic(cluster, f"of-{client}")
                producers.append(make_producer(client, cluster.bootstrap_servers, HASTY, request))
                loads.append(Load(producers[-1], name=client, topic=f"of-{client}"))
                loads[-1].start()
            yield HastyCampaign(cluster, loads)
        finally:
            for load in loads:
                load.give_up()
            for producer in producers:
                producer.close()


@pytest.mark.scenario("X-47", "X-16")
@pytest.mark.java
def test_nothing_that_is_acknowledged_after_a_pause_is_lost(
    tmp_path: Path,
    request: pytest.FixtureRequest,
    record_property: Callable[[str, object], None],
    extent: CampaignExtent,
) -> None:
    """SIGSTOP of a leader for 10 to 15 seconds, each third time the active controller's node, with
    the settings that a cluster has by itself: 9 seconds of session."""
    pauses_s = extent.share(PAUSES_S, parts=PARTS)
    at_risk: set[str] = set()
    waited = 0
    with hasty_campaign(tmp_path, ("librdkafka", "java"), request) as running:
        for number, pause_s in enumerate(pauses_s):
            paused = running.cluster.active_controller()
            if number % 3:
                paused = running.leader(running.loads[0].topic, number % PARTITIONS)
            topic, partition = running.place_led_by(paused)
            before = running.acknowledged()
            running.write(RECORDS)
            running.cluster.pause(paused)
            try:
                _pass(running, paused, topic, partition, pause_s)
                waited += running.unanswered(topic, partition)
                at_risk |= running.acknowledged() - before
            finally:
                running.cluster.resume(paused)
            running.settle()
            running.spread_leaders()
        running.settle()
        events = all_events(running.cluster, "BrokerPaused")
        lost = running.acknowledged() - running.stored()
    told = f"{len(running.acknowledged())} acknowledged, {waited} waited in sockets at the ends of "
    told += (
        f"{len(pauses_s)} pauses, {len(lost & at_risk)} lost that were acknowledged before a pause"
    )
    record_property("pauses", told)
    print(told)
    assert len(events) >= len(pauses_s)
    assert waited > 0, "no request waited in the sockets of a leader that was stopped"
    assert not lost - at_risk, sorted(lost - at_risk)[:10]


def _pass(running: Campaign, paused: int, topic: str, partition: int, pause_s: float) -> None:
    """Until another leads, and so many seconds have passed."""
    until_s = time.monotonic() + pause_s
    witness = next(each for each in running.cluster.broker_ids if each != paused)

    def has_moved() -> bool:
        view = running.cluster.partition_view(topic, partition, via=witness)
        return view is not None and view.leader not in (paused, -1) and time.monotonic() > until_s

    wait_until(has_moved, "another leader")
