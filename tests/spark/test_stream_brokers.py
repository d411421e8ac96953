"""Brokers killed while Spark writes a batch: the stream goes on, and every record is there once.

One stream for all of them. It waits when it has begun a batch, until the broker is dead.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.clusters import ThreeKafkas
from tests.campaign_extent import CampaignExtent
from tests.kafka import KafkaCluster, unavailable_reason
from tests.kafka.broker import START_TIMEOUT_S
from tests.kafka.tools import QUICK_START
from tests.process.waiting import wait_until
from tests.process.wire import WireClient
from tests.spark.conftest import KAFKA_SETTINGS
from tests.spark.stream_pipes import Pipe
from tests.spark.stream_runs import Programs
from tidelog.client.sink.options import GROUP_PREFIX

pytestmark = [
    pytest.mark.java,
    pytest.mark.long,
    pytest.mark.xdist_group("spark-campaigns"),
]

LIMIT = 8
GROUP_KEY, TRANSACTION_KEY = 0, 1
VICTIMS = ("leader", "transaction coordinator", "group coordinator", "controller")
PARTS = 2
"""A run has every second of them, other code the others; with `--whole-campaigns` it has all."""


@pytest.fixture
def mortals() -> Iterator[KafkaCluster]:
    """A cluster of our own, since we kill its brokers."""
    if reason := unavailable_reason():
        pytest.skip(f"Apache Kafka cannot run here: {reason}")
    with KafkaCluster(
        brokers=3, settings=KAFKA_SETTINGS, heap="256m", java_options=QUICK_START
    ) as kafka:
        ThreeKafkas(kafka).wait_until_formed()
        yield kafka


def victim(kafka: KafkaCluster, pipe: Pipe, who: str) -> int:
    three = ThreeKafkas(kafka)
    if who == "leader":
        return int(three.partitions(pipe.topic)[0].leader_id)
    if who == "controller":
        return wait_until(three.controller, "a controller")
    key_type = GROUP_KEY if who == "group coordinator" else TRANSACTION_KEY
    with WireClient(kafka.nodes[0].address) as wire:
        answer = wire.ask(
            "FindCoordinator", 4, key_type=key_type, coordinator_keys=[GROUP_PREFIX + pipe.topic]
        )
    return int(answer.coordinators[0].node_id)


def test_brokers_that_die_in_a_batch_cost_time_and_nothing_else(
    mortals: KafkaCluster, tmp_path: Path, extent: CampaignExtent
) -> None:
    victims = extent.share(VICTIMS, parts=PARTS)
    pipe = Pipe(mortals, "stream-brokers", tmp_path)
    pipe.feed(LIMIT)
    waits_at = [1 + 2 * each for each in range(len(victims))]
    with Programs(tmp_path) as programs:
        program = programs.go(pipe.wish(limit=LIMIT, waits_at=waits_at), is_last=True)
        program.wait_for("BatchCommitted 0")
        for batch_id, who in zip(waits_at, victims, strict=True):
            pipe.feed(LIMIT)
            program.wait_for(f"waits {batch_id}")
            node = mortals.nodes[victim(mortals, pipe, who) - 1]

            node.kill()
            program.tell("")
            program.wait_for(f"BatchCommitted {batch_id}")
            pipe.feed(LIMIT)
            program.wait_for(f"BatchCommitted {batch_id + 1}")

            node.start()
            node.wait_until_serving(time.monotonic() + START_TIMEOUT_S)
            for topic in (pipe.source, pipe.topic):
                ThreeKafkas(mortals).wait_until_in_sync(topic)
        assert program.count("stopped") == 0, program.story()
        assert pipe.committed() == pipe.every_record_once()
