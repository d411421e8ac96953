"""AssignReplicasToDirs: a broker tells the active controller in which directory a replica lies.

The answer does not say what the controller made of it, so the cases also look into the metadata
log. A broker whose replica lies elsewhere says so at once: only the first changes of a topic are
the answer to what was asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tests.golden.cases.registry import cluster_case
from tests.golden.cluster_talk import LEAVING, NODES, ClusterTalk, controller
from tests.golden.plain import to_plain
from tests.golden.talk import MADE_UP_ID, Topic
from tidelog.core.metadata.records import PartitionChangeRecord

LONG_AGO = 0
"""A broker epoch before all broker epochs."""
MIGRATING = bytes(16)
UNASSIGNED = bytes(15) + b"\x01"
LOST = bytes(15) + b"\x02"
RESERVED = bytes(15) + b"\x63"
NOBODYS = b"directory-of-no1"
RECORD_VERSION = 2

Where = tuple[bytes, Sequence[tuple[bytes, Sequence[int]]]]
"""A directory and, by topic id, the partitions in it."""


def directory(talk: ClusterTalk, node: int) -> bytes:
    """The one log directory of a node, with its name in the recording."""
    (found,) = talk.registration(node).log_dirs
    return talk.label(found, f"directory:{node}")


def place(
    talk: ClusterTalk,
    version: int,
    *told: Where,
    broker: int = 1,
    broker_epoch: int | None = None,
    at: int | None = None,
) -> None:
    """As this broker tells the active controller."""
    for known, label in ((MIGRATING, "migrating"), (UNASSIGNED, "unassigned"), (LOST, "lost")):
        talk.label(known, f"directory:{label}")
    talk.label(RESERVED, "directory:reserved")
    talk.ask(
        "AssignReplicasToDirs",
        version,
        on=controller(talk.active_controller() if at is None else at),
        broker_id=broker,
        broker_epoch=talk.broker_epoch(broker) if broker_epoch is None else broker_epoch,
        directories=[
            {
                "id_": where,
                "topics": [
                    {"topic_id": topic_id, "partitions": [{"partition_index": i} for i in indexes]}
                    for topic_id, indexes in topics
                ],
            }
            for where, topics in told
        ],
    )


def changes(talk: ClusterTalk, topic: Topic) -> list[dict[str, Any]]:
    """What the metadata log says of a topic after its creation, one entry for each record."""
    as_before = to_plain(PartitionChangeRecord(), RECORD_VERSION)
    found = [
        to_plain(each, RECORD_VERSION)
        for each in talk.metadata_records(PartitionChangeRecord)
        if each.topic_id == topic.id
    ]
    return [
        {
            name: value
            for name, value in each.items()
            if value != as_before[name] and name != "topic_id"
        }
        for each in found
    ]


def look_at_changes(talk: ClusterTalk, topic: Topic, *, first: int | None = None) -> None:
    for node in NODES:
        directory(talk, node)
    talk.look("changes of the partition in the metadata log", changes(talk, topic)[:first])


def wait_until_corrected(talk: ClusterTalk, topic: Topic, replicas: Sequence[int]) -> None:
    """Until the brokers have said where their replicas really are."""
    actual = [directory(talk, node) for node in replicas]

    def is_corrected() -> bool:
        told = [each["directories"] for each in changes(talk, topic) if "directories" in each]
        return bool(told and told[-1] == actual)

    talk.wait_for(is_corrected, f"the directories of {topic.name} as they are")


@cluster_case("AssignReplicasToDirs", 0)
def where_it_is(talk: ClusterTalk, version: int) -> None:
    """What the controller knows already changes nothing; nor does a report without a word."""
    topic = talk.placed_topic([1, 2, 3])
    place(talk, version, (directory(talk, 1), [(topic.id, [0])]))
    place(talk, version)
    place(talk, version, (directory(talk, 1), []), (UNASSIGNED, [(topic.id, [])]))
    look_at_changes(talk, topic)


@cluster_case("AssignReplicasToDirs", 0)
def of_an_old_life(talk: ClusterTalk, version: int) -> None:
    """An old broker epoch, one that is still to come, and a broker that does not exist."""
    topic = talk.placed_topic([1, 2, 3])
    told = (UNASSIGNED, [(topic.id, [0])])
    place(talk, version, told, broker_epoch=LONG_AGO)
    place(talk, version, told, broker_epoch=-1)
    place(talk, version, told, broker_epoch=2**40)
    place(talk, version, told, broker=9, broker_epoch=LONG_AGO)
    look_at_changes(talk, topic)


@cluster_case("AssignReplicasToDirs", 0)
def of_what_is_not_there(talk: ClusterTalk, version: int) -> None:
    """Unknown topics and partitions are refused one by one, in order; the others are taken."""
    topic = talk.placed_topic([1, 2], [1, 2])
    here = directory(talk, 1)
    place(talk, version, (here, [(topic.id, [7, 1, -1, 0]), (MADE_UP_ID, [1, 0])]))
    place(
        talk, version, (NOBODYS, [(MADE_UP_ID, [0]), (bytes(16), [0])]), (here, [(topic.id, [0])])
    )
    look_at_changes(talk, topic)


@cluster_case("AssignReplicasToDirs", 0)
def of_replicas_of_others(talk: ClusterTalk, version: int) -> None:
    """A broker speaks only of its own replicas."""
    topic = talk.placed_topic([1, 2], [3, 1])
    place(talk, version, (directory(talk, 3), [(topic.id, [0, 1])]), broker=3)
    look_at_changes(talk, topic)


@cluster_case("AssignReplicasToDirs", 0)
def to_directories_that_are_still_to_come(talk: ClusterTalk, version: int) -> None:
    """Reserved ids for "nowhere yet" put nobody out of the in-sync set."""
    for short, where in (("unassigned", UNASSIGNED), ("migrating", MIGRATING)):
        topic = talk.placed_topic([1, 2, 3], short=short)
        place(talk, version, (where, [(topic.id, [0])]))
        look_at_changes(talk, topic, first=1)
        wait_until_corrected(talk, topic, [1, 2, 3])


@cluster_case("AssignReplicasToDirs", 0)
def of_a_follower_to_lost_directories(talk: ClusterTalk, version: int) -> None:
    """A follower in a directory that its broker does not have is out of the in-sync set."""
    elsewhere = directory(talk, 3)
    for short, where in (
        ("lost", LOST),
        ("reserved", RESERVED),
        ("nobodys", NOBODYS),
        ("elsewhere", elsewhere),
    ):
        topic = talk.placed_topic([1, 2, 3], short=short)
        place(talk, version, (where, [(topic.id, [0])]), broker=2)
        look_at_changes(talk, topic, first=2)
        wait_until_corrected(talk, topic, [1, 2, 3])
        talk.wait_for_partition(topic.name, 0, leader=1, isr=[1, 2, 3])


@cluster_case("AssignReplicasToDirs", 0)
def of_a_leader_to_a_lost_directory(talk: ClusterTalk, version: int) -> None:
    """A leader in a directory that its broker does not have leads no more."""
    topic = talk.placed_topic([1, 2, 3])
    place(talk, version, (LOST, [(topic.id, [0])]))
    look_at_changes(talk, topic, first=2)
    wait_until_corrected(talk, topic, [1, 2, 3])
    talk.wait_for_partition(topic.name, 0, leader=2, isr=[1, 2, 3])


@cluster_case("AssignReplicasToDirs", 0)
def of_the_only_replica_to_a_lost_directory(talk: ClusterTalk, version: int) -> None:
    """The partition has no leader then, and the controller remembers who may lead it again."""
    topic = talk.placed_topic([1])
    place(talk, version, (LOST, [(topic.id, [0])]))
    look_at_changes(talk, topic, first=2)


@cluster_case("AssignReplicasToDirs", 0)
def to_two_directories_at_once(talk: ClusterTalk, version: int) -> None:
    """The same replica twice in one report is answered twice."""
    topic = talk.placed_topic([1, 2])
    here = [(topic.id, [0])]
    place(talk, version, (UNASSIGNED, here), (MIGRATING, here), (directory(talk, 1), here))
    look_at_changes(talk, topic, first=2)
    wait_until_corrected(talk, topic, [1, 2])


@cluster_case("AssignReplicasToDirs", 0)
def at_a_standby(talk: ClusterTalk, version: int) -> None:
    """A controller that is not active takes nothing down."""
    topic = talk.placed_topic([1, 2])
    place(talk, version, (UNASSIGNED, [(topic.id, [0])]), at=talk.standby_controller())
    place(talk, version, broker_epoch=LONG_AGO, at=talk.standby_controller())
    look_at_changes(talk, topic)


@cluster_case("AssignReplicasToDirs", 0)
def of_a_broker_that_is_away(talk: ClusterTalk, version: int) -> Iterator[None]:
    """A fenced broker is believed; when it is back it says where its replicas really are."""
    topic = talk.placed_topic([1, LEAVING])
    yield
    told = (LOST, [(topic.id, [0])])
    before = len(changes(talk, topic))
    place(talk, version, told, broker=LEAVING)
    directory(talk, 1)
    talk.look("changes of the partition in the metadata log", changes(talk, topic)[before:])
    yield
    wait_until_corrected(talk, topic, [1, LEAVING])
    talk.wait_for_partition(topic.name, 0, leader=1, isr=[1, LEAVING])
