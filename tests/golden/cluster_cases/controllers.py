"""What brokers ask of the active controller: changes of in-sync replicas, producer ids, to live."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import cluster_case
from tests.golden.cluster_talk import ClusterTalk, controller
from tests.golden.talk import MADE_UP_ID, Topic

LONG_AGO = 0
"""A broker epoch before all broker epochs."""


def alter(
    talk: ClusterTalk,
    version: int,
    topic: Topic | bytes,
    isr: list[int],
    *,
    broker: int = 1,
    broker_epoch: int | None = None,
    member_epochs: dict[int, int] | None = None,
    at: int | None = None,
    **options: Any,
) -> Any:
    """AlterPartition for partition 0, as its leader would ask; options change its fields."""
    asked: dict[str, Any] = {"partition_index": 0, "leader_epoch": 0, "partition_epoch": 0}
    if version >= 3:
        known = member_epochs or {}
        asked["new_isr_with_epochs"] = [
            {"broker_id": node, "broker_epoch": known.get(node, -1)} for node in isr
        ]
    else:
        asked["new_isr"] = isr
    asked |= options
    topic_id = topic if isinstance(topic, bytes) else topic.id
    return talk.ask(
        "AlterPartition",
        version,
        on=controller(talk.active_controller() if at is None else at),
        shown=None,
        broker_id=broker,
        broker_epoch=talk.broker_epoch(broker) if broker_epoch is None else broker_epoch,
        topics=[{"topic_id": topic_id, "partitions": [asked]}],
    )


@cluster_case("AlterPartition", 2, 3)
def to_fewer(talk: ClusterTalk, version: int) -> None:
    """The leader takes a follower out."""
    topic = talk.placed_topic([1, 2, 3])
    alter(talk, version, topic, [1, 2])


@cluster_case("AlterPartition", 2, 3)
def to_what_it_is(talk: ClusterTalk, version: int) -> None:
    """A change that changes nothing."""
    topic = talk.placed_topic([1, 2, 3])
    alter(talk, version, topic, [1, 2, 3])


@cluster_case("AlterPartition", 2, 3)
def by_one_that_does_not_lead(talk: ClusterTalk, version: int) -> None:
    """A follower may not ask."""
    topic = talk.placed_topic([1, 2, 3])
    alter(talk, version, topic, [2, 3], broker=2)


@cluster_case("AlterPartition", 2, 3)
def of_an_old_life(talk: ClusterTalk, version: int) -> None:
    """The asker's broker epoch is an old one; then that of a broker that does not exist."""
    topic = talk.placed_topic([1, 2, 3])
    alter(talk, version, topic, [1, 2], broker_epoch=LONG_AGO)
    alter(talk, version, topic, [1, 2], broker=9, broker_epoch=LONG_AGO)


@cluster_case("AlterPartition", 2, 3)
def with_wrong_epochs(talk: ClusterTalk, version: int) -> None:
    """Leader and partition epochs that are not the controller's."""
    topic = talk.placed_topic([1, 2, 3])
    alter(talk, version, topic, [1, 2], leader_epoch=-1)
    alter(talk, version, topic, [1, 2], leader_epoch=4)
    alter(talk, version, topic, [1, 2], partition_epoch=-1)
    alter(talk, version, topic, [1, 2], partition_epoch=4)


@cluster_case("AlterPartition", 2, 3)
def to_impossible_sets(talk: ClusterTalk, version: int) -> None:
    """Without the leader, with a stranger, with nobody, with one twice."""
    topic = talk.placed_topic([1, 2])
    for isr in ([2], [1, 3], [], [1, 1], [1, 2, 9]):
        alter(talk, version, topic, isr)


@cluster_case("AlterPartition", 3)
def with_members_of_an_old_life(talk: ClusterTalk, version: int) -> None:
    """A member whose broker epoch has passed is not let in."""
    topic = talk.placed_topic([1, 2, 3])
    alter(talk, version, topic, [1, 2], member_epochs={2: LONG_AGO})


@cluster_case("AlterPartition", 2, 3)
def of_what_is_not_there(talk: ClusterTalk, version: int) -> None:
    """An unknown topic, and a partition that a topic does not have."""
    topic = talk.placed_topic([1, 2])
    alter(talk, version, MADE_UP_ID, [1])
    alter(talk, version, topic, [1], partition_index=7)


@cluster_case("AlterPartition", 2, 3)
def with_odd_recovery_states(talk: ClusterTalk, version: int) -> None:
    """Recovering with two members, recovering after it was recovered, and no such state."""
    topic = talk.placed_topic([1, 2])
    alter(talk, version, topic, [1, 2], leader_recovery_state=1)
    alter(talk, version, topic, [1], leader_recovery_state=1)
    alter(talk, version, topic, [1], leader_recovery_state=7)


@cluster_case("AlterPartition", 2, 3)
def at_a_standby(talk: ClusterTalk, version: int) -> None:
    """A controller that is not active decides nothing."""
    topic = talk.placed_topic([1, 2])
    alter(talk, version, topic, [1], at=talk.standby_controller())


def without_the_block(plain: Any) -> Any:
    """How many ids were given away before is chance."""
    is_given = plain["error_code"] == 0
    return {**plain, "producer_id_start": "<pid>" if is_given else plain["producer_id_start"]}


@cluster_case("AllocateProducerIds", 0)
def to_brokers_of_all_kinds(talk: ClusterTalk, version: int) -> None:
    """A block for a broker that lives, none for an old life or a stranger, none from a standby."""
    active, standby = talk.active_controller(), talk.standby_controller()
    for node, broker, broker_epoch in (
        (active, 1, talk.broker_epoch(1)),
        (active, 1, LONG_AGO),
        (active, 9, LONG_AGO),
        (standby, 1, talk.broker_epoch(1)),
    ):
        fields = {"broker_id": broker, "broker_epoch": broker_epoch}
        place = controller(node)
        talk.ask("AllocateProducerIds", version, on=place, shown=without_the_block, **fields)


@cluster_case("BrokerHeartbeat", 0, 2)
def of_brokers_of_all_kinds(talk: ClusterTalk, version: int) -> None:
    """One that lives and has read everything, an old life, a stranger; and a standby is asked."""
    active, standby = talk.active_controller(), talk.standby_controller()
    for node, broker, broker_epoch in (
        (active, 1, talk.broker_epoch(1)),
        (active, 1, LONG_AGO),
        (active, 9, LONG_AGO),
        (standby, 1, talk.broker_epoch(1)),
    ):
        fields: dict[str, Any] = {"broker_id": broker, "broker_epoch": broker_epoch}
        fields |= {"current_metadata_offset": 2**40, "want_fence": False, "want_shut_down": False}
        talk.ask("BrokerHeartbeat", version, on=controller(node), **fields)


@cluster_case("BrokerHeartbeat", 0, 2)
def that_lags_behind(talk: ClusterTalk, version: int) -> None:
    """A broker that serves is not fenced because it has not read the newest metadata."""
    fields: dict[str, Any]
    fields = {"broker_id": 1, "broker_epoch": talk.broker_epoch(1), "current_metadata_offset": 0}
    talk.ask("BrokerHeartbeat", version, on=controller(talk.active_controller()), **fields)
