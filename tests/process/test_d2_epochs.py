"""Document 2 on real processes: who takes writes, and what leader epochs tell of each record."""

from __future__ import annotations

from functools import partial

import pytest

from tests.process.evidence import (
    all_events,
    dumped,
    end_offset,
    lead_as_preferred,
    produce_by_hand,
)
from tests.process.producers import Ok
from tests.process.stage import Stage
from tests.process.target import IS_KAFKA
from tests.process.timelines import StartProducer
from tests.process.waiting import wait_until
from tests.process.wire import batch_of
from tidelog.core.model.errors import ErrorCode

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("d1"),
]

CHECKPOINT = "leader-epoch-checkpoint"


@pytest.mark.scenario("D2-A1", "D5-L1")
def test_only_the_leader_takes_writes_whoever_asks(
    stage: Stage, start_producer: StartProducer
) -> None:
    """A client does not choose the leader: what it sends to a follower is refused with the leader's
    name, and every client's producer sends to the one that the metadata names."""
    topic = stage.new_topic((2, 1, 3))
    standing = stage.wait_for(topic, lambda it: True, via=1)
    assert standing.replicas == [2, 1, 3] and standing.leader == 2
    for follower in (1, 3):
        answer, _ = produce_by_hand(stage.cluster, topic, batch_of(b"no"), to=follower)
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert answer.current_leader.leader_id == 2

    for place, client in enumerate(("librdkafka", "kafka-python")):
        assert start_producer(client).send(topic, client).wait() == Ok(place)
        assert [stage.asked_for(broker, client) for broker in (1, 2, 3)] == [[], [0], []]
    assert stage.values(topic, leader=2) == ["librdkafka", "kafka-python"]


@pytest.mark.scenario("D2-C1", "D2-E2", "D2-E6", "N8")
def test_each_replica_knows_where_each_leaders_records_begin(
    stage: Stage, start_producer: StartProducer
) -> None:
    """Broker 1 leads, then 2, then 1 again, each writing: the file beside each replica's segments
    maps epochs to offsets in Kafka's format, and so says which leader wrote each record."""
    topic = stage.new_topic((1, 2, 3))
    producer = start_producer("librdkafka")
    assert [producer.send(topic, value).wait() for value in ("a", "b")] == [Ok(0), Ok(1)]
    stage.kill(1)
    assert producer.send(topic, "c").wait() == Ok(2)
    stage.restart(1)
    stage.cluster.wait_until_in_sync(topic, 0)
    lead_as_preferred(stage.cluster, topic, 1, by=2)
    assert [producer.send(topic, value).wait() for value in ("d", "e")] == [Ok(3), Ok(4)]

    for broker in (1, 2, 3):
        wait_until(partial(lambda of: end_offset(stage, topic, of=of) == 5, broker), "all records")
        directory = stage.cluster.nodes[broker].data_path / f"{topic}-0"
        file = directory / CHECKPOINT
        elections = all_events(stage.cluster, "LeaderElected", f"topic={topic}")
        assert file.read_text() == "0\n3\n0 0\n1 2\n2 3\n", (broker, elections)
        facts = dumped(directory)
        [told] = [fact["entries"] for fact in facts if fact["kind"] == "leader epochs"]
        assert [(one["leader_epoch"], one["start_offset"]) for one in told] == [
            (0, 0),
            (1, 2),
            (2, 3),
        ]
        leaders = {
            int(event.text.split("leader_epoch=")[1].split()[0]): int(
                event.text.split("broker_id=")[1].split()[0]
            )
            for event in all_events(stage.cluster, "BecameLeader", f"partition={topic}-0")
        }
        batches = [fact for fact in facts if fact["kind"] == "batch"]
        authors = {fact["base_offset"]: leaders[fact["leader_epoch"]] for fact in batches}
        assert authors == {0: 1, 1: 1, 2: 2, 3: 1, 4: 1}
