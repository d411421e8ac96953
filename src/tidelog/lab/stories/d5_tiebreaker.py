"""Document 5, further on: the document's own assignment, other sizes of clusters, and a tiebreaker.

Two racks never agree on who is gone. A third place with one controller and no broker is enough: it
gives the majority to whichever rack is left (N47).
"""

from __future__ import annotations

from collections import Counter

from tidelog.cluster.layout import NodePlan
from tidelog.cluster.profiles import PROFILES
from tidelog.core.wire.messages.api_63_broker_heartbeat import BrokerHeartbeatRequest
from tidelog.lab.audit import CLEAN
from tidelog.lab.engine import Layout
from tidelog.lab.lab import Lab
from tidelog.lab.stories.cast import CONTROLLER, NOT_LEADER, ok
from tidelog.lab.story import story

BOTH = ("broker", "controller")
TIEBREAKER = 5


@story("D5-P2", "N45")
def the_documents_own_assignment(lab: Lab) -> None:
    """Three brokers, three partitions, written down by hand: P0 1 2 3, P1 2 3 1, P2 3 1 2."""
    lab.cluster()
    topic = lab.create("orders", (1, 2, 3), (2, 3, 1), (3, 1, 2))
    lab.step("D5-P2", "replicas, leaders and ISRs are exactly so, for every broker")
    for broker in (1, 2, 3):
        partitions = lab.descriptions(topic, via=broker)
        lab.same(
            "replicas", [each.replicas for each in partitions], [(1, 2, 3), (2, 3, 1), (3, 1, 2)]
        )
        lab.same("leaders", [each.leader for each in partitions], [1, 2, 3])
        lab.same("ISRs", {each.isr for each in partitions}, {(1, 2, 3)})
    lab.step("N45", "the first replica is the preferred one: there is nothing to elect")
    lab.same("an election", lab.elect("preferred").name, "ELECTION_NOT_NEEDED")


@story("D5-P3", "N45")
def clusters_of_every_size(lab: Lab) -> None:
    """Six brokers, then five, and so on: a broker that is gone gets no leadership."""
    lab.cluster(brokers=(1, 2, 3, 4, 5, 6), controllers=(7,))
    left = [1, 2, 3, 4, 5, 6]
    for size in (6, 5, 4, 3, 2):
        factor = min(3, size)
        placed = lab.create_anywhere(
            f"of-{size}", partitions=2 * size + 1, replication_factor=factor
        )
        lab.step(
            "D5-P3", "N45", f"{size} brokers: leaders differ by one at most, replicas are distinct"
        )
        leads = Counter(replicas[0] for replicas in placed)
        lab.same("brokers that lead", sorted(leads), left)
        lab.between("leaders per broker", max(leads.values()) - min(leads.values()), 0, 1)
        lab.true("distinct", all(len(set(replicas)) == factor for replicas in placed))
        lab.true("nobody who is gone", all(set(replicas) <= set(left) for replicas in placed))
        lab.stop(left.pop())
        lab.until("it is gone", lambda: lab.unfenced() == tuple(left))


@story("D5-B2", "N14")
def heartbeats_are_missing(lab: Lab) -> None:
    """Broker 1 stands still, no connection breaks: only its silence tells, after one session."""
    lab.cluster(profile="tidelog")
    lab.create("orders", (1, 2, 3))
    lab.fill(10)
    lab.pass_ms(3_000)
    lab.pause(1)
    lab.listen_to(2, 3)
    lab.until_led(2)
    (fenced,) = lab.happenings(CONTROLLER, "BrokerFenced")
    heard = lab.requests(CONTROLLER, BrokerHeartbeatRequest.api_key, peer=1)[-1]
    lab.step("D5-B2", "N14", "the controller marks it dead 9 s after its last heartbeat")
    lab.same("the reason", fenced.fields["reason"], "its session ended")
    lab.lasted("milliseconds of silence", (fenced.at_us - heard.at_us) / 1_000, 9_000, 9_010)
    lab.step(
        "D5-B2", "it is not among the brokers that clients are told about, until it moves again"
    )
    lab.same("brokers", lab.unfenced(), (2, 3))
    lab.resume(1)
    lab.until_isr(1, 2, 3)
    lab.same("brokers", lab.unfenced(), (1, 2, 3))
    lab.same("the audit", lab.audit(), CLEAN)


@story("D5-R12", "D5-R13", "N47")
def the_tiebreaker_decides(lab: Lab) -> None:
    """Controllers on 1 in rack a, on 3 in rack b, and one outside: rack a dies, rack b goes on."""
    _two_racks_and_a_tiebreaker(lab)
    lab.kill(1, 2)
    lab.listen_to(3, 4)
    lab.until("rack b leads", lambda: lab.leaders(lab.topic, via=3) == [3, 3, 4])
    lab.step("D5-R13", "N47", "3 and the tiebreaker are a majority, and one of them decides")
    lab.among("the active controller", lab.quorum().leader_id, (3, TIEBREAKER))
    _rack_b_goes_on(lab)
    lab.start(1, 2)
    _all_is_well_again(lab)


@story("D5-R12", "N38")
def rack_a_is_cut_off(lab: Lab) -> None:
    """Nothing gets out of rack a or into it, while all in it live: it can commit nothing alone."""
    _two_racks_and_a_tiebreaker(lab)
    for broker in (1, 2):
        lab.isolate(broker, 3, 4, TIEBREAKER)
    stale = lab.writer("in rack a").begin("never acknowledged", to=1)
    lab.listen_to(3, 4)
    lab.until("rack b leads", lambda: lab.leaders(lab.topic, via=3) == [3, 3, 4])
    _rack_b_goes_on(lab)
    lab.step("N38", "broker 1 believes that it leads P0, and acknowledges nothing")
    lab.same("the leader, as 1 knows it", lab.desc(via=1).leader, 1)
    lab.true("no acknowledgement", not stale.is_ok)
    for broker in (1, 2):
        lab.rejoin(broker, 3, 4, TIEBREAKER)
    _all_is_well_again(lab)
    lab.step("D5-R12", "healed, rack a follows: what 1 took alone is gone")
    lab.same("what 1 says", lab.writer("late").write("x", to=1).error, NOT_LEADER)
    lab.same("log(1)", lab.payloads(1), lab.payloads(3))


def _two_racks_and_a_tiebreaker(lab: Lab) -> None:
    """The document's layout: P0 on 1 and 3, P1 on 3 and 2, P2 on 4 and 1; one record in each."""
    layout = Layout(
        nodes=(
            NodePlan(id=1, roles=BOTH, rack="a"),
            NodePlan(id=2, roles=("broker",), rack="a"),
            NodePlan(id=3, roles=BOTH, rack="b"),
            NodePlan(id=4, roles=("broker",), rack="b"),
            NodePlan(id=TIEBREAKER, roles=("controller",)),
        ),
        settings=PROFILES["documents"],
    )
    lab.begin(layout)
    lab.create("orders", (1, 3), (3, 2), (4, 1), min_insync_replicas="1")
    writer = lab.writer("before")
    for index in range(3):
        assert writer.write(f"before {index}", index=index).is_ok
        lab.until_quiet(index)


def _rack_b_goes_on(lab: Lab) -> None:
    lab.until("the ISRs shrank", lambda: _isrs(lab) == [(3,), (3,), (4,)])
    partitions = lab.descriptions(lab.topic, via=3)
    lab.step("D5-R12", "P0 moved to 3 in a new leader epoch, P1 and P2 kept their leaders")
    lab.same("leader epochs", [each.leader_epoch for each in partitions], [1, 0, 0])
    writer = lab.writer("after")
    for index in range(3):
        lab.same(f"a write to P{index}", writer.write(f"after {index}", index=index), ok(1))
        leader = partitions[index].leader or 0
        lab.same("a read", lab.read(leader, index=index), [f"before {index}", f"after {index}"])


def _all_is_well_again(lab: Lab) -> None:
    lab.until("all ISRs are full", lambda: _isrs(lab) == [(1, 3), (2, 3), (1, 4)])
    lab.step("D5-R12", "rack a is back, and nothing acknowledged is lost")
    for index in range(3):
        lab.until_quiet(index)
        lab.same(f"the audit of P{index}", lab.audit(index), CLEAN)


def _isrs(lab: Lab) -> list[tuple[int, ...]]:
    return [each.isr for each in lab.descriptions(lab.topic, via=3)]
