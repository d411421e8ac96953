"""Beyond the documents, on real processes: sleepers, planned moves, short lives, false alarms."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.process.broker import Setting
from tests.process.cluster import METADATA_TOPIC, ProcessCluster
from tests.process.evidence import (
    all_events,
    dumped,
    end_offset,
    events,
    lead_as_preferred,
    wait_until_named,
)
from tests.process.producers import Call, Librdkafka, Ok, ProducerOptions
from tests.process.stage import Stage
from tests.process.target import IS_KAFKA
from tests.process.timelines import StartProducer
from tests.process.verdicts import final_log, lost, verdict, writes
from tests.process.waiting import PATIENCE_MS, wait_until
from tests.process.wire import batches_on_disk
from tidelog.judge.history import WriteAcks

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("x-leaders"),
]

RECORDS = 30
REQUEST_TIMEOUT_MS = 2_500


def lost_of(
    stage: Stage, topic: str, *, leader: int, hasty: list[Call], careful: list[Call]
) -> list[str]:
    """What the judge finds lost of acks=1 and acks=all writes."""
    history = [
        *writes(hasty, partition=f"{topic}-0", writer="hasty", acks=WriteAcks.LEADER),
        *writes(careful, partition=f"{topic}-0", writer="careful"),
    ]
    final = final_log(stage.cluster.nodes[leader].address, topic, partition=0, at_us=10**9)
    found = verdict(history, final)
    assert {each.name for each in found} <= {"lost"}, found
    return lost(found)


@pytest.mark.long
@pytest.mark.scenario("X-16", "N38")
def test_a_leader_that_slept_through_its_own_replacement(
    stage: Stage, start_producer: StartProducer
) -> None:
    """What lies in its sockets when it wakes is acknowledged by the new leader alone, with acks=all
    and with acks=1, where Kafka's would say ok to the latter and lose it. The old one follows."""
    old, new, third = stage.controller_last()
    topic = stage.new_topic((old, new, third), min_insync_replicas="2")
    careful = start_producer("librdkafka", request_timeout_ms=REQUEST_TIMEOUT_MS)
    hasty = start_producer("librdkafka", acks="1", enable_idempotence=False)
    all_careful, all_hasty = [careful.send(topic, "before")], [hasty.send(topic, "also before")]
    assert {all_careful[0].wait(), all_hasty[0].wait()} == {Ok(0), Ok(1)}
    stage.wait_for_end(topic, 2, of=new)

    stage.freeze(old)
    all_hasty.append(hasty.send(topic, "hasty"))
    all_careful.append(careful.send(topic, "careful"))
    wait_until(lambda: stage.asked_for(old, "hasty"), "a request in the sleeper's socket")
    assert all_careful[-1].wait() == Ok(2)
    assert stage.wait_for(topic, lambda it: it.leader == new, via=third).leader_epoch == 1

    stage.wake(old)
    assert isinstance(all_hasty[-1].wait(), Ok)
    stage.cluster.wait_until_in_sync(topic, 0)
    assert lost_of(stage, topic, leader=new, hasty=all_hasty, careful=all_careful) == []
    end = end_offset(stage, topic, of=new)  # With acks=1 nobody waits for the followers.
    for broker in (old, third):
        stage.wait_for_end(topic, end, of=broker)
    copies = [stage.headers(topic, of=broker) for broker in (old, new, third)]
    assert copies[0] == copies[1] == copies[2]
    assert stage.values(topic, leader=new)[2] == "careful"


def by_election(stage: Stage, topic: str) -> str:
    lead_as_preferred(stage.cluster, topic, 1, by=3)
    return "kind=preferred"


def by_shutdown(stage: Stage, topic: str) -> str:
    assert stage.cluster.stop_node(2) == 0
    stage.kill(2)
    return "kind=clean"


def by_reassignment(stage: Stage, topic: str) -> str:
    partition = {"partition_index": 0, "replicas": [1, 3]}
    asked = [{"name": topic, "partitions": [partition]}]
    with stage.cluster.wire(1) as wire:
        answer = wire.ask("AlterPartitionReassignments", 1, topics=asked, timeout_ms=60_000)
    assert answer.responses[0].partitions[0].error_code == 0
    return "kind=clean"


@pytest.mark.scenario("X-17", "D3-PG2")
@pytest.mark.parametrize("move", [by_election, by_shutdown, by_reassignment])
def test_a_planned_move_loses_what_acks_1_wrote(
    stage: Stage, start_producer: StartProducer, move: Callable[[Stage, str], str]
) -> None:
    """Leader 2 acknowledges a record with acks=1 that 1, in sync and next in line, has not fetched.
    Then 1 is made the leader, 2 is shut down, or 2 is taken out of the replicas: the record is
    gone, and the new leader epoch says by which move. What was written with acks=all was not
    acknowledged, and arrives once."""
    topic = stage.new_topic((1, 2, 3))
    stage.kill(1)
    stage.wait_for(topic, lambda it: it.leader == 2, via=2)
    stage.restart(1)
    stage.cluster.wait_until_in_sync(topic, 0)
    hold = stage.hold_back(1, leader=2)
    producers = {
        acks: start_producer("librdkafka", acks=acks, enable_idempotence=acks == "all")
        for acks in ("1", "all")
    }
    hasty = producers["1"].send(topic, "hasty")
    assert hasty.wait() == Ok(0)
    careful = producers["all"].send(topic, "careful")
    stage.wait_for_end(topic, 2, of=2)
    assert careful.outcome is None

    kind = move(stage, topic)
    wait_until_named(stage.cluster, topic, 1)  # Until 1 knows, it would go on copying.
    hold.lose()

    assert careful.wait() == Ok(0)
    assert lost_of(stage, topic, leader=1, hasty=[hasty], careful=[careful]) == ["hasty"]
    words = [f"topic={topic}", "leader=1", "leader_epoch=2", kind]
    assert len(all_events(stage.cluster, "LeaderElected", *words)) == 1


@pytest.mark.scenario("X-36")
def test_a_broker_that_is_killed_and_back_within_its_session(tmp_path: Path) -> None:
    """Its old process is known to be dead, so it need not wait for the end of its session, for
    which nobody here has the patience: it loses what it led, is admitted with a new broker epoch,
    and in sync again with all that was acknowledged."""
    endless: dict[str, Setting] = {"broker.session.timeout.ms": 2 * PATIENCE_MS}
    with ProcessCluster(directory=tmp_path, settings=endless) as cluster:
        cluster.create_topic("orders", partitions=1, min_insync_replicas="2")
        before = cluster.partition_view("orders", 0, via=1)
        assert before is not None
        words = f"broker_id={before.leader}"
        admitted = all_events(cluster, "BrokerAdmitted", words)
        with closing(Librdkafka(cluster.bootstrap_servers, ProducerOptions())) as producer:
            calls = [producer.send("orders", str(number)) for number in range(RECORDS)]
            cluster.kill(before.leader)
            cluster.launch_node(before.leader)
            calls += [producer.send("orders", str(n)) for n in range(RECORDS, 2 * RECORDS)]
            assert [call.wait() for call in calls] == [Ok(n) for n in range(2 * RECORDS)]

        cluster.wait_until_formed()
        cluster.wait_until_in_sync("orders", 0)
        again = all_events(cluster, "BrokerAdmitted", words)
        assert len(again) > len(admitted)
        # Nobody fences it if it is back before anybody has knocked twice: its registration takes
        # away what it led.
        for event in all_events(cluster, "BrokerFenced", words):
            assert event.at_s <= again[-1].at_s and "dead" in event.text, event
        after = cluster.partition_view("orders", 0, via=before.leader)
        assert after is not None and after.leader != before.leader
        assert after.leader_epoch == before.leader_epoch + 1
        directories = [node.data_path for node in cluster.nodes.values()]
        copies = [batches_on_disk(directory, "orders") for directory in directories]
        assert copies[0] == copies[1] == copies[2]


@pytest.mark.scenario("X-41")
def test_connections_are_refused_though_the_broker_lives(
    stage: Stage, start_producer: StartProducer
) -> None:
    """Everything on the way to broker 1 is reset and refused for a while: whether it is fenced or
    not, nothing written with acks=all is lost, and it is back in sync by itself."""
    topic = stage.new_topic((1, 2, 3), min_insync_replicas="2")
    producer = start_producer("librdkafka")
    calls = [producer.send(topic, str(number)) for number in range(RECORDS)]
    pid = stage.cluster.nodes[1].pid

    def refusals() -> int:
        words = ("leader_id=1", "reason=refused")
        return len(events(stage.cluster, 2, "FollowerBackedOff", *words))

    before = refusals()
    stage.proxies[1].refuse()
    stage.proxies[1].reset()
    wait_until(lambda: refusals() > before, "followers that are refused")
    stage.proxies[1].listen_again()
    calls += [producer.send(topic, str(number)) for number in range(RECORDS, 2 * RECORDS)]

    assert [call.wait() for call in calls] == [Ok(number) for number in range(2 * RECORDS)]
    stage.cluster.wait_until_in_sync(topic, 0)
    assert stage.cluster.is_running(1) and stage.cluster.nodes[1].pid == pid
    copies = [stage.headers(topic, of=broker) for broker in (1, 2, 3)]
    assert copies[0] == copies[1] == copies[2]


@pytest.mark.scenario("X-14")
def test_a_controller_dies_with_a_decision_that_nobody_else_has(
    stage: Stage, start_producer: StartProducer
) -> None:
    """The active controller writes down who leads next and dies before any other voter has it. The
    next controller decides anew; no leader epoch has two leaders, and nothing is lost."""
    controller = stage.cluster.active_controller()
    leader, other = (broker for broker in (1, 2, 3) if broker != controller)
    topic = stage.new_topic((leader, other, controller), min_insync_replicas="2")
    producer = start_producer("librdkafka")
    assert producer.send(topic, "before").wait() == Ok(0)
    topic_id = stage.topic_id(topic)

    stage.freeze(other)
    stage.kill(leader)
    after = producer.send(topic, "after")
    wait_until(
        lambda: _decided(stage, controller, topic_id, other), "a decision on the controller's disk"
    )
    assert not events(stage.cluster, controller, "BecameLeader", f"partition={topic}-0")
    stage.kill(controller)
    stage.wake(other)
    assert after.outcome is None
    stage.launch(controller)

    assert after.wait() == Ok(1)
    stage.restart(leader)
    stage.cluster.wait_until_in_sync(topic, 0)
    standing = stage.wait_for(topic, lambda it: True, via=other)
    leaders = _leaders_by_epoch(stage, topic)
    assert all(len(brokers) == 1 for brokers in leaders.values()), leaders
    assert leaders[standing.leader_epoch] == {standing.leader}
    assert stage.values(topic, leader=standing.leader) == ["before", "after"]
    copies = [stage.headers(topic, of=broker) for broker in (1, 2, 3)]
    assert copies[0] == copies[1] == copies[2]


def _decided(stage: Stage, controller: int, topic_id: bytes, elected: int) -> bool:
    """Whether the controller's own metadata log has this leader in its last word on the topic."""
    directory = stage.cluster.nodes[controller].data_path / f"{METADATA_TOPIC}-0"
    records = [str(fact.get("metadata")) for fact in dumped(directory)]
    of_topic = [record for record in records if f"topic_id={bytes(topic_id)!r}" in record]
    return f"leader={elected}," in of_topic[-1]


def _leaders_by_epoch(stage: Stage, topic: str) -> dict[int, set[int]]:
    found: dict[int, set[int]] = {}
    for event in all_events(stage.cluster, "BecameLeader", f"partition={topic}-0"):
        fields = dict(word.split("=", 1) for word in event.text.split() if "=" in word)
        found.setdefault(int(fields["leader_epoch"]), set()).add(int(fields["broker_id"]))
    return found


@pytest.mark.scenario("D3-T20", "N15")
def test_a_broker_that_dies_soon_after_the_controller_is_found_out_as_soon(tmp_path: Path) -> None:
    """The new controller has had no heartbeat of it yet, and will not for long; the connection of
    its metadata fetches tells, so nobody waits for a session."""
    rare: dict[str, Setting] = {
        "broker.heartbeat.interval.ms": 15_000,
        "broker.session.timeout.ms": 60_000,
    }
    with ProcessCluster(directory=tmp_path, settings=rare) as cluster:
        cluster.create_topic("orders", partitions=1)
        first = cluster.active_controller()
        cluster.kill(first)
        others = [broker for broker in (1, 2, 3) if broker != first]
        wait_until(
            lambda: all_events(cluster, "BrokerFenced", f"broker_id={first}"), "the first death"
        )
        cluster.rejoin(first)
        cluster.wait_until_in_sync("orders", 0)
        controller = cluster.active_controller()
        second = next(broker for broker in others if broker != controller)
        cluster.kill(second)
        wait_until(
            lambda: all_events(cluster, "BrokerFenced", f"broker_id={second}"), "the second death"
        )
        for victim in (first, second):
            fenced = all_events(cluster, "BrokerFenced", f"broker_id={victim}")[-1]
            assert "its process is dead" in fenced.text
