"""Document 5: who decides about leaders, where replicas are placed, and what a lost rack costs.

Brokers 1 and 2 are in rack a, 3 and 4 in rack b; the controllers live outside both, unless a story
says otherwise. Elections know no racks: they follow the order of the assignment (N46).
"""

from __future__ import annotations

from collections import Counter

from tidelog.lab.audit import CLEAN
from tidelog.lab.lab import Lab
from tidelog.lab.stories.cast import NONE, NOT_ENOUGH, ok
from tidelog.lab.story import story

RACKS = {1: "a", 2: "a", 3: "b", 4: "b"}
BROKERS = (1, 2, 3, 4)
CONTROLLER = 5


@story("D5-L2", "D5-L3", "N48")
def the_controller_decides_every_leadership(lab: Lab) -> None:
    """Through deaths, returns and preferred elections: each leadership is a controller's record."""
    lab.cluster(controllers=(4,))
    lab.create("orders", (1, 2, 3))
    for _ in range(2):
        leader = lab.leader()
        assert leader is not None, "all are in sync, and nobody leads"
        lab.kill(leader)
        _another_leads(lab, leader)
    lab.until_elected(1)
    lab.stop(1)
    _another_leads(lab, 1)
    lab.until_elected(1)

    decided = {
        (each.fields["leader"], each.fields["leader_epoch"]): each.at_us
        for kind in ("PartitionCreated", "PartitionChanged")
        for each in reversed(lab.happenings(4, kind))
        if each.fields["leader"] is not None
    }
    believed = [
        (node, each.fields["leader_epoch"], each.at_us)
        for node in (1, 2, 3)
        for each in lab.happenings(node, "BecameLeader")
    ]
    lab.step("D5-L2", "every leadership that a broker took up was decided by the controller before")
    lab.true("there were several", len(believed) >= 5)
    undecided = [each for each in believed if decided.get(each[:2], each[2] + 1) > each[2]]
    lab.same("without a record", undecided, [])
    lab.step("D5-L3", "N48", "no leader epoch has two leaders")
    counts = Counter(leader_epoch for _, leader_epoch, _ in believed)
    lab.same("leader epochs with two", [each for each, n in counts.items() if n > 1], [])


def _another_leads(lab: Lab, gone: int) -> None:
    """Whoever it is: who is slow for a session is passed over. Then the one that left returns."""
    lab.until("another one leads", lambda: lab.leader() not in (gone, None))
    lab.start(gone)
    lab.until_isr(1, 2, 3)


@story("D5-P2", "D5-P3", "N45")
def leaders_are_spread_over_brokers(lab: Lab) -> None:
    """Three brokers, three partitions: one leader each; and so for other sizes."""
    lab.cluster(brokers=(1, 2, 3))
    replicas = lab.create_anywhere("three", partitions=3, replication_factor=3)
    lab.step("D5-P2", "one leader per broker, and the replicas striped behind it")
    lab.same("leaders", sorted(each[0] for each in replicas), [1, 2, 3])
    lab.true("each on all brokers", all(sorted(each) == [1, 2, 3] for each in replicas))
    lab.step("D5-P3", "N45", "leaders per broker differ by one at most; replicas are distinct")
    for partitions, factor in ((1, 1), (4, 2), (7, 3), (20, 2)):
        name = f"topic-{partitions}-{factor}"
        replicas = lab.create_anywhere(name, partitions=partitions, replication_factor=factor)
        lab.true(f"distinct in {name}", all(len(set(each)) == factor for each in replicas))
        lab.between(f"spread in {name}", _spread([each[0] for each in replicas], (1, 2, 3)), 0, 1)


@story("D5-R3", "D5-R4", "D5-R5", "N45")
def replicas_are_spread_over_racks(lab: Lab) -> None:
    """Two racks of two brokers: replicas and leaders are even over racks and over brokers."""
    _begin(lab)
    pairs = lab.create_anywhere("pairs", partitions=50, replication_factor=2)
    lab.step("D5-R4", "with two replicas there is one in each rack, always")
    lab.same("racks of each", {_racks(each) for each in pairs}, {("a", "b")})
    triples = lab.create_anywhere("triples", partitions=12, replication_factor=3)
    lab.step("D5-R5", "with three replicas it is two and one, or one and two")
    shapes = Counter(_racks(each) for each in triples)
    lab.same("shapes", set(shapes), {("a", "a", "b"), ("a", "b", "b")})
    lab.between("how much one shape prevails", abs(shapes["a", "a", "b"] - 6), 0, 3)
    lab.step("D5-R3", "N45", "leaders per rack and per broker differ by one at most")
    for name, placed in (("pairs", pairs), ("triples", triples)):
        leaders = [each[0] for each in placed]
        lab.between(f"brokers in {name}", _spread(leaders, BROKERS), 0, 1)
        lab.between(f"racks in {name}", _spread([RACKS[each] for each in leaders], "ab"), 0, 1)


@story("D5-R6", "N45")
def leaders_return_by_themselves(lab: Lab) -> None:
    """After a rack was gone and came back, the automatic balance restores the preferred leaders."""
    lab.cluster(
        BROKERS,
        controllers=(CONTROLLER,),
        racks=RACKS,
        settings={"leader.imbalance.check.interval.seconds": "20"},
    )
    topic = lab.create("orders", (1, 3), (3, 2), (2, 4), (4, 1))
    lab.kill(1, 2)
    lab.until("rack b leads", lambda: set(lab.leaders(topic, via=3)) <= {3, 4})
    lab.start(1, 2)
    lab.until("all are in sync", lambda: _all_in_sync(lab))
    lab.step("D5-R6", "with rack a back, its leaderships are still in rack b")
    lab.same("leaders", {RACKS[each or 0] for each in lab.leaders(topic, via=3)}, {"b"})
    lab.until(
        "the balance",
        lambda: lab.leaders(topic, via=3) == [1, 3, 2, 4],
        within_ms=40_000,
    )
    lab.step("D5-R6", "N45", "within the interval every preferred replica leads again")
    lab.same("leaders", lab.leaders(topic, via=3), [1, 3, 2, 4])


@story("D5-R7", "D5-B3", "N46")
def an_election_knows_no_racks(lab: Lab) -> None:
    """The next replica of the assignment leads, in the same rack or not."""
    _begin(lab)
    topic = lab.create("orders", (1, 2, 3), (1, 3, 2))
    pair = lab.create("payments", (1, 4))
    lab.kill(1)
    lab.until_led(2)
    lab.until("3 knows", lambda: lab.leaders(topic, via=3)[0] == 2)
    leaders = lab.leaders(topic, via=3)
    lab.step(
        "D5-R7", "N46", "2 stands before 3: it leads, though it is in the rack of the dead one"
    )
    lab.same("replicas [1, 2, 3]", leaders[0], 2)
    lab.same("replicas [1, 3, 2]", leaders[1], 3)
    lab.step("D5-B3", "with two replicas it is always the other rack")
    lab.same("replicas [1, 4]", lab.leaders(pair, via=3), [4])


@story("D5-R8", "D5-R12", "D5-B5")
def a_rack_is_lost(lab: Lab) -> None:
    """P0 on 1 and 3, P1 on 3 and 2, P2 on 4 and 1: rack a dies, and all goes on in rack b."""
    _begin(lab)
    topic = lab.create("orders", (1, 3), (3, 2), (4, 1), min_insync_replicas="1")
    lab.step("D5-R8", "leaders in racks a and b are 1 to 2")
    lab.same("leaders", lab.leaders(topic, via=1), [1, 3, 4])
    writer = lab.writer("writer")
    for index in range(3):
        assert writer.write(f"before {index}", index=index).is_ok
    lab.kill(1, 2)
    lab.until_led(3)
    lab.until("the ISRs have shrunk", lambda: _isrs(lab) == [(3,), (3,), (4,)])
    lab.step("D5-R12", "P0 moves to 3 in a new leader epoch, P1 and P2 keep their leaders")
    partitions = lab.descriptions(topic, via=3)
    lab.same("leaders", [each.leader for each in partitions], [3, 3, 4])
    lab.same("leader epochs", [each.leader_epoch for each in partitions], [1, 0, 0])
    for index in range(3):
        lab.same(f"a write to P{index}", writer.write(f"after {index}", index=index), ok(1))
        lab.same(f"nothing lost in P{index}", lab.audit(index), CLEAN)

    lab.step("D5-B5", "P0 keeps its replicas; none is in rack a until 1 is back")
    lab.same(
        "leader, replicas, ISR",
        (partitions[0].leader, partitions[0].replicas, partitions[0].isr),
        (3, (1, 3), (3,)),
    )
    lab.start(1)
    lab.until_isr(1, 3)
    lab.until_elected(1)
    lab.same("after a preferred election", lab.leader(), 1)


@story("D5-R12", "D5-R13", "N47")
def what_survives_a_lost_rack(lab: Lab) -> None:
    """Replication factor and minimum decide, partition by partition, what rack b can do alone."""
    _begin(lab)
    topics = {
        "RF 2, minimum 1": lab.create("rf2-min1", (1, 3), min_insync_replicas="1"),
        "RF 2, minimum 2": lab.create("rf2-min2", (1, 3), min_insync_replicas="2"),
        "RF 3, minimum 2, two in a": lab.create("rf3-aab", (1, 2, 3), min_insync_replicas="2"),
        "RF 3, minimum 2, two in b": lab.create("rf3-abb", (1, 3, 4), min_insync_replicas="2"),
        "RF 4, minimum 2": lab.create("rf4-min2", (1, 2, 3, 4), min_insync_replicas="2"),
    }
    writer = lab.writer("writer")
    for topic in topics.values():
        lab.about(topic)
        assert writer.write("before").is_ok
    lab.kill(1, 2)
    lab.step("D5-R13", "N47", "reads go on everywhere; acks=all where survivors reach the minimum")
    wanted = {"RF 2, minimum 2": NOT_ENOUGH, "RF 3, minimum 2, two in a": NOT_ENOUGH}
    for name, topic in topics.items():
        lab.about(topic)
        lab.until_led(3)
        lab.until("2 and 1 are out", lambda: not {1, 2} & set(lab.desc().isr))
        lab.same(f"acks=all with {name}", writer.write("after").error, wanted.get(name, NONE))
        lab.until_read(3, ["before", "after"] if name not in wanted else ["before"])
        lab.same(f"a read with {name}", lab.read(3)[:1], ["before"])
    lab.step("D5-R12", "no acknowledged record is lost")
    for topic in topics.values():
        lab.about(topic)
        lab.same(f"lost in {topic.name}", lab.audit().lost, ())


@story("D5-R13", "N47")
def the_controllers_majority_was_in_the_lost_rack(lab: Lab) -> None:
    """Two of three controllers die with rack a: nobody can be elected until one of them is back."""
    lab.cluster(BROKERS, controllers=(5, 6, 7), racks=RACKS)
    lab.create("orders", (1, 3), min_insync_replicas="1")
    assert lab.writer("writer").write("before").is_ok
    lab.kill(1, 2, 5, 6)
    lab.pass_ms(30_000)
    lab.step("D5-R13", "N47", "no election at all: 1 is dead, and still named as the leader")
    lab.same("leader, ISR", (lab.desc(via=3).leader, lab.desc(via=3).isr), (1, (1, 3)))
    lab.start(5)
    lab.until_led(3)
    lab.step("D5-R13", "a majority is back, and 3 leads")
    lab.until_read(3, ["before"])
    lab.same("what a consumer gets", lab.read(3), ["before"])


def _begin(lab: Lab) -> None:
    lab.cluster(BROKERS, controllers=(CONTROLLER,), racks=RACKS)


def _racks(replicas: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(sorted(RACKS[broker] for broker in replicas))


def _spread(found: list[int] | list[str], possible: tuple[int, ...] | str) -> int:
    """The most frequent against the least frequent."""
    counts = [sum(each == one for each in found) for one in possible]
    return max(counts) - min(counts)


def _isrs(lab: Lab) -> list[tuple[int, ...]]:
    return [each.isr for each in lab.descriptions(lab.topic, via=3)]


def _all_in_sync(lab: Lab) -> bool:
    return all(len(isr) == 2 for isr in _isrs(lab))
