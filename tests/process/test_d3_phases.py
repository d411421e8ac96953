"""Document 3's downtime table on real processes: from the crash to the first answer, in phases.

Each phase has a test of its own: its order, and how long it may take by the profile's settings.
A machine that is busy may add five seconds to a phase, and take one from the detection by silence.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.process.cluster import ProcessCluster
from tests.process.evidence import Event, all_events
from tests.process.producers import Librdkafka, Ok, ProducerOptions
from tests.process.readers import LibrdkafkaReader
from tests.process.target import IS_KAFKA
from tests.process.waiting import wait_until
from tidelog.cluster.profiles import PROFILES

pytestmark = [
    pytest.mark.skipif(IS_KAFKA, reason="Apache Kafka as a cluster is another harness"),
    pytest.mark.xdist_group("d3-phases"),
]

MANY = 300
STEADY = {"replica.lag.time.max.ms": 300_000, "auto.leader.rebalance.enable": False}
BUSY_S = 5.0
"""How much later than the settings say something may come where processors are shared."""
EARLY_S = 1.0
"""How much earlier: the last heartbeat before the crash may have been late by so much. Clocks of
events and of this process agree to a tick."""
PROBES_S = 0.1
"""Two refused connections, 20 ms apart, and what is around them."""
BACKOFF_S = 1.0
"""A client that lost its leader asks for the new one again and again, no less often than this."""
TICK_S = 0.002
"""Brokers write down milliseconds."""


def create(cluster: ProcessCluster, name: str, replicas: list[int], partitions: int) -> None:
    placed = [{"partition_index": each, "broker_ids": replicas} for each in range(partitions)]
    topic = {"name": name, "num_partitions": -1, "replication_factor": -1, "assignments": placed}
    cluster.ask_for_topic(topic, by=replicas[0])
    for partition in (0, partitions - 1):
        cluster.wait_until_in_sync(name, partition)


def named_by(cluster: ProcessCluster, witness: int, leader: int) -> float:
    """When this broker first named the new leader of the last of the many partitions, or later."""

    def names_it() -> bool:
        standing = cluster.partition_view("many", MANY - 1, via=witness)
        return standing is not None and standing.leader == leader

    wait_until(names_it, f"broker {witness} to name {leader}")
    return time.time()


def is_by_silence(profile: str) -> bool:
    return PROFILES[profile]["tidelog.failure.detection"] == "session"


def seconds(profile: str) -> tuple[float, float]:
    """The session of a broker, and the interval of its heartbeats."""
    session_ms, interval_ms = (
        int(PROFILES[profile][name])
        for name in ("broker.session.timeout.ms", "broker.heartbeat.interval.ms")
    )
    return session_ms / 1_000, interval_ms / 1_000


def bounds(profile: str) -> dict[str, tuple[float, float]]:
    """By the settings, at least and at most so many seconds for each phase."""
    session_s, interval_s = seconds(profile)
    at_least_s, at_most_s = session_s - interval_s, session_s
    if not is_by_silence(profile):
        at_least_s, at_most_s = 0, PROBES_S
    return {
        "detection": (at_least_s, at_most_s),
        "301 elections": (0, 0),
        "all lead": (0, 0),
        "named by all": (0, 0),
        "first write": (0, BACKOFF_S),
        "first read": (0, BACKOFF_S),
        "crash to first read": (at_least_s, at_most_s + 2 * BACKOFF_S),
    }


def described(took_s: dict[str, float]) -> str:
    return ", ".join(f"{phase} {1_000 * value:.0f} ms" for phase, value in took_s.items())


def out_of_bounds(failover: Failover, phase: str) -> str | None:
    """What is wrong with how long a phase took; None: nothing."""
    at_least_s, at_most_s = bounds(failover.profile)[phase]
    took_s = failover.phases[phase]
    if at_least_s - EARLY_S <= took_s <= at_most_s + BUSY_S:
        return None
    return f"{phase}: {took_s:.3f} s, not between {at_least_s:g} and {at_most_s:g}"


def of_topics(cluster: ProcessCluster, kind: str, *texts: str) -> list[Event]:
    """Events about the topics of this test; the reader's group has a topic of its own."""
    found = all_events(cluster, kind, *texts)
    return [event for event in found if "__consumer_offsets" not in event.text]


class Failover(NamedTuple):
    """One leader's death under one profile, as clients and the brokers' own events tell it."""

    profile: str
    crashed_s: float
    fenced: Event
    elected: list[Event]
    leading: list[Event]
    named_s: float
    """When the last broker was seen to name the new leader."""
    written_s: float
    read_s: float

    @property
    def phases(self) -> dict[str, float]:
        """In seconds, one after the other; `named by all` runs beside them."""
        return {
            "detection": self.fenced.at_s - self.crashed_s,
            "301 elections": self.elected[-1].at_s - self.fenced.at_s,
            "all lead": self.leading[-1].at_s - self.elected[-1].at_s,
            "named by all": self.named_s - self.elected[-1].at_s,
            "first write": self.written_s - self.leading[-1].at_s,
            "first read": self.read_s - self.written_s,
            "crash to first read": self.read_s - self.crashed_s,
        }


PROFILES_TRIED = [
    "tidelog",
    pytest.param("documents", marks=pytest.mark.long),
    pytest.param("kafka-4", marks=pytest.mark.long),
]


@pytest.fixture(scope="module", params=PROFILES_TRIED)
def failover(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Failover:
    """The leader of 301 partitions is killed while one record is sent to it and a reader waits."""
    profile: str = request.param
    settings: dict[str, str | int | bool] = {**PROFILES[profile], **STEADY}
    directory = tmp_path_factory.mktemp(profile)
    with ProcessCluster(directory=directory, settings=settings) as cluster:
        controller = cluster.active_controller()
        old, new = (broker for broker in (1, 2, 3) if broker != controller)
        create(cluster, "many", [old, new, controller], MANY)
        create(cluster, "orders", [old, new, controller], 1)
        with (
            closing(Librdkafka(cluster.bootstrap_servers, ProducerOptions())) as producer,
            closing(LibrdkafkaReader(cluster.bootstrap_servers, "orders")) as reader,
        ):
            assert producer.send("orders", "before").wait() == Ok(0)
            reader.read_until("before")
            crashed_s = time.time()
            cluster.kill(old)
            call = producer.send("orders", "after")
            named_s = max(named_by(cluster, witness, new) for witness in (new, controller))
            assert call.wait() == Ok(1)
            written_s = time.time()
            reader.read_until("after")
            read_s = time.time()
            assert reader.values == ["before", "after"]
        return Failover(
            profile=profile,
            crashed_s=crashed_s,
            fenced=all_events(cluster, "BrokerFenced", f"broker_id={old}")[-1],
            elected=of_topics(cluster, "LeaderElected", f"leader={new}", "kind=clean")[-MANY - 1 :],
            leading=of_topics(cluster, "BecameLeader", f"broker_id={new}", "leader_epoch=1"),
            named_s=named_s,
            written_s=written_s,
            read_s=read_s,
        )


@pytest.mark.scenario("D3-D1", "D3-T14", "N14")
def test_detection_takes_the_rest_of_a_session_or_two_refused_connections(
    failover: Failover,
) -> None:
    """By silence: from the last heartbeat, so between a session less an interval and a session."""
    assert failover.crashed_s <= failover.fenced.at_s + TICK_S
    assert ("dead" not in failover.fenced.text) == is_by_silence(failover.profile)
    assert not out_of_bounds(failover, "detection")


@pytest.mark.scenario("D3-D2", "D3-T7", "D3-T20", "D5-B6")
def test_one_decision_elects_the_leaders_of_all_its_partitions(failover: Failover) -> None:
    """301 partitions, each once, before anything else happens; elections wait for nothing."""
    assert len(failover.elected) == len(failover.leading) == MANY + 1
    times_s = [event.at_s for event in failover.elected]
    assert failover.fenced.at_s <= times_s[0] <= times_s[-1]
    assert not out_of_bounds(failover, "301 elections")
    assert not out_of_bounds(failover, "all lead")


@pytest.mark.scenario("D3-D3")
def test_every_broker_names_the_new_leader_as_soon_as_the_metadata_reaches_it(
    failover: Failover,
) -> None:
    """From the last election on; nothing is polled, so no interval of a setting comes between."""
    assert failover.elected[0].at_s <= failover.named_s
    assert not out_of_bounds(failover, "named by all")


@pytest.mark.scenario("D3-D4")
def test_a_producer_that_lost_its_leader_writes_within_its_backoff(failover: Failover) -> None:
    """P2a: the connection broke, so it need not wait for a timeout of its request."""
    assert failover.leading[-1].at_s <= failover.written_s + TICK_S
    assert not out_of_bounds(failover, "first write")


@pytest.mark.scenario("D3-D5", "D3-V6")
def test_a_consumer_that_lost_its_leader_reads_within_its_backoff(failover: Failover) -> None:
    assert failover.written_s <= failover.read_s
    assert not out_of_bounds(failover, "first read")


@pytest.mark.scenario("D3-D6", "D3-D7", "N51")
def test_what_a_client_feels_is_the_detection_and_little_else(
    failover: Failover, record_property: Callable[[str, object], None]
) -> None:
    """All phases in one report, under each of the three timing profiles."""
    took_s = failover.phases
    text = f"{failover.profile}: {described(took_s)}"
    record_property("phases", text)
    print(text)
    felt = ("detection", "301 elections", "all lead", "first write", "first read")
    assert abs(took_s["crash to first read"] - sum(took_s[phase] for phase in felt)) < TICK_S
    assert not out_of_bounds(failover, "crash to first read")


@pytest.mark.scenario("D3-D8")
def test_a_dead_process_is_noticed_before_any_session_ends(failover: Failover) -> None:
    """Where a refused connection is a proof, all is over in less than a session less an interval,
    the least that silence takes; where only silence is, it never is."""
    session_s, interval_s = seconds(failover.profile)
    is_over = failover.phases["crash to first read"] < session_s - interval_s - EARLY_S
    assert is_over == (not is_by_silence(failover.profile))


@pytest.mark.long
@pytest.mark.scenario("X-36")
def test_a_broker_back_within_its_session_waits_for_its_end(tmp_path: Path) -> None:
    """Where only silence proves a death, the new process is not let in while the session of the old
    one lives; then it is, by itself, and with its records."""
    settings: dict[str, str | int | bool]
    settings = {**PROFILES["documents"], "replica.lag.time.max.ms": 300_000}
    with ProcessCluster(directory=tmp_path, settings=settings) as cluster:
        controller = cluster.active_controller()
        old, new = (broker for broker in (1, 2, 3) if broker != controller)
        create(cluster, "orders", [old, new, controller], 1)
        before = len(all_events(cluster, "BrokerAdmitted", f"broker_id={old}"))
        crashed_s = time.time()
        cluster.kill(old)
        cluster.launch_node(old)
        wait_until(
            lambda: len(all_events(cluster, "BrokerAdmitted", f"broker_id={old}")) > before,
            "the new process to be let in",
        )
        admitted = all_events(cluster, "BrokerAdmitted", f"broker_id={old}")[-1]
        session_s, interval_s = seconds("documents")
        waited_s = admitted.at_s - crashed_s
        assert session_s - interval_s - EARLY_S <= waited_s <= session_s + BUSY_S, waited_s
        # Who asks in the very moment in which the session ends is let in before anybody is fenced.
        fenced = all_events(cluster, "BrokerFenced", f"broker_id={old}")
        refused = all_events(cluster, "BrokerRefused", f"broker_id={old}")
        assert fenced or refused
        assert all("dead" not in each.text for each in fenced)
        assert all(each.at_s <= admitted.at_s for each in (*fenced, *refused))
        cluster.wait_until_formed()
        cluster.wait_until_in_sync("orders", 0)
