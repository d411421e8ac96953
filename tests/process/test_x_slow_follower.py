"""One follower is slow, not dead: acks=all waits for it until it is out of the ISR."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.process.evidence import events
from tests.process.producers import Ok
from tests.process.stage import Stage, running_stage
from tests.process.target import IS_KAFKA
from tests.process.timelines import PYTHON_CLIENTS, StartCrew

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("x-slow-follower"),
]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    settings = {"replica.lag.time.max.ms": 3_000}
    with running_stage(tmp_path_factory.mktemp("slow"), settings=settings) as stage:
        yield stage


@pytest.mark.long
@pytest.mark.scenario("X-39", "N1")
def test_acks_all_waits_for_a_slow_follower_until_it_has_left_the_isr(
    stage: Stage, start_crew: StartCrew
) -> None:
    """Follower 3 lives and is given nothing. The answer comes when the ISR has shrunk without it,
    not before; when it is served again it catches up and is back."""
    crew = start_crew(PYTHON_CLIENTS)
    topic = stage.new_topic(*[(1, 2, 3)] * len(PYTHON_CLIENTS), min_insync_replicas="1")
    crew.send(topic, "before").wait_for(Ok(0))
    hold = stage.hold_back(3, leader=1)
    calls = crew.send(topic, "order")
    for partition in crew.partitions.values():
        stage.wait_for_end(topic, 2, of=2, partition=partition)
    calls.wait_for(Ok(1))
    for partition in crew.partitions.values():
        words = [f"partition={topic}-{partition}"]
        shrunk = [
            event
            for event in events(stage.cluster, 1, "IsrCommitted", *words)
            if "3" not in event.text.split("isr=")[1]
        ]
        assert shrunk, "the ISR shrank before anybody was answered"
        assert stage.cluster.is_running(3)

    hold.release()
    for partition in crew.partitions.values():
        stage.cluster.wait_until_in_sync(topic, partition)
    crew.send(topic, "after").wait_for(Ok(2))
    for partition in crew.partitions.values():
        stage.wait_for_end(topic, 3, of=3, partition=partition)
        assert stage.headers(topic, of=3, partition=partition) == stage.headers(
            topic, of=1, partition=partition
        )
