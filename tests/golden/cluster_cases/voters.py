"""The quorum among itself: votes, epochs that begin and end, snapshots, and the metadata log.

Nothing here may succeed: a vote that is granted would throw the leader over.
"""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import cluster_case
from tests.golden.cluster_talk import (
    METADATA_TOPIC,
    METADATA_TOPIC_ID,
    NODES,
    ClusterTalk,
    controller,
)

CLUSTER_ELSEWHERE = "elsewhere-elsewhere-22"
BEYOND = 2**40
CHANCE = {
    "current_leader_epoch",
    "end_offset",
    "epoch",
    "high_watermark",
    "last_fetched_epoch",
    "last_offset_epoch",
    "leader_epoch",
    "leader_id",
    "replica_id",
}
"""Who leads in which epoch and how far is chance; whether it is known is not."""


def ask_voter(talk: ClusterTalk, api: str, version: int, node: int, **fields: Any) -> Any:
    """Ask a node as one controller asks another; numbers that are chance are not shown."""
    answer = talk.ask(api, version, on=controller(node), shown=without_numbers, **fields)
    talk.steps[-1]["fields"] = without_numbers(talk.steps[-1]["fields"])
    return answer


def without_numbers(plain: Any) -> Any:
    if isinstance(plain, list):
        return [without_numbers(item) for item in plain]
    if not isinstance(plain, dict):
        return plain
    shown: dict[str, Any] = {}
    for name, value in plain.items():
        if name in CHANCE and value > 0:
            shown[name] = "<known>"
        elif name == "node_endpoints":
            shown[name] = ["<the-leader>"] * len(value)
        elif name != "records":
            shown[name] = without_numbers(value)
    return shown


def vote(talk: ClusterTalk, version: int, node: int, **options: Any) -> Any:
    """Ask a node for its vote; a hopeless candidate unless options say otherwise."""
    fields = {"cluster_id": options.pop("cluster_id", None)}
    topic = options.pop("topic", METADATA_TOPIC)
    asked = {"partition_index": 0, "replica_epoch": 1, "replica_id": 1}
    asked |= {"last_offset_epoch": 0, "last_offset": 0, **options}
    fields["topics"] = [{"topic_name": topic, "partitions": [asked]}]
    if version >= 1:
        fields["voter_id"] = node
    return ask_voter(talk, "Vote", version, node, **fields)


@cluster_case("Vote", 2)
def in_an_old_epoch(talk: ClusterTalk, version: int) -> None:
    """Every voter refuses a candidate of the time before the first epoch."""
    for node in NODES:
        options = {"replica_epoch": 0, "pre_vote": True}
        vote(talk, version, node, cluster_id=talk.cluster_id(), **options)


@cluster_case("Vote", 0, 1, 2)
def that_contradicts_itself(talk: ClusterTalk, version: int) -> None:
    """A log that ends in the candidate's own epoch, or before every epoch and offset."""
    for node in NODES:
        vote(talk, version, node, last_offset_epoch=1)
        vote(talk, version, node, last_offset_epoch=-1)
        vote(talk, version, node, last_offset=-1)


@cluster_case("Vote", 0, 2)
def for_another_cluster(talk: ClusterTalk, version: int) -> None:
    """A candidate that believes to belong elsewhere is refused as a whole."""
    vote(talk, version, 1, cluster_id=CLUSTER_ELSEWHERE)


@cluster_case("Vote", 0, 2)
def for_another_topic(talk: ClusterTalk, version: int) -> None:
    """The quorum votes about one partition of one topic."""
    vote(talk, version, 1, topic="tides")
    vote(talk, version, 1, partition_index=1)


@cluster_case("Vote", 2)
def beforehand_while_a_leader_lives(talk: ClusterTalk, version: int) -> None:
    """A pre-vote is refused by all who hear from a leader, and changes nothing."""
    leader_epoch, leader = talk.quorum_epoch(), talk.active_controller()
    candidate, other = (node for node in NODES if node != leader)
    for node in (leader, other):
        options = {"replica_id": candidate, "replica_epoch": leader_epoch, "pre_vote": True}
        options |= {"last_offset_epoch": leader_epoch, "last_offset": BEYOND}
        vote(talk, version, node, **options)
        del talk.steps[-1]["fields"]["voter_id"]


def ask_epoch(talk: ClusterTalk, api: str, version: int, node: int, **options: Any) -> Any:
    """A leader of epoch 1, long ago, begins or ends it; options say otherwise."""
    fields: dict[str, Any] = {"cluster_id": options.pop("cluster_id", None)}
    topic = options.pop("topic", METADATA_TOPIC)
    asked = {"partition_index": 0, "leader_id": 1, "leader_epoch": 0, **options}
    fields["topics"] = [{"topic_name": topic, "partitions": [asked]}]
    if api == "BeginQuorumEpoch" and version >= 1:
        fields["voter_id"] = node
    return ask_voter(talk, api, version, node, **fields)


@cluster_case("BeginQuorumEpoch", 0, 1)
def in_an_epoch_that_is_over(talk: ClusterTalk, version: int) -> None:
    """A leader of long ago is told who leads now."""
    for node in NODES:
        ask_epoch(talk, "BeginQuorumEpoch", version, node)


@cluster_case("BeginQuorumEpoch", 0, 1)
def of_somewhere_else(talk: ClusterTalk, version: int) -> None:
    """Another cluster, another topic, another partition."""
    ask_epoch(talk, "BeginQuorumEpoch", version, 1, cluster_id=CLUSTER_ELSEWHERE)
    ask_epoch(talk, "BeginQuorumEpoch", version, 1, topic="tides")
    ask_epoch(talk, "BeginQuorumEpoch", version, 1, partition_index=1)


@cluster_case("EndQuorumEpoch", 0, 1)
def in_an_epoch_long_ended(talk: ClusterTalk, version: int) -> None:
    """A leader of long ago cannot resign any more."""
    for node in NODES:
        ask_epoch(talk, "EndQuorumEpoch", version, node)


@cluster_case("EndQuorumEpoch", 0, 1)
def of_somewhere_else_entirely(talk: ClusterTalk, version: int) -> None:
    """Another cluster, another topic, another partition."""
    ask_epoch(talk, "EndQuorumEpoch", version, 1, cluster_id=CLUSTER_ELSEWHERE)
    ask_epoch(talk, "EndQuorumEpoch", version, 1, topic="tides")
    ask_epoch(talk, "EndQuorumEpoch", version, 1, partition_index=1)


def fetch_snapshot(talk: ClusterTalk, version: int, node: int, **options: Any) -> Any:
    """As a voter asks for it: an observer would be remembered."""
    fields = {"cluster_id": options.pop("cluster_id", None)}
    fields["replica_id"] = talk.standby_controller()
    topic = options.pop("topic", METADATA_TOPIC)
    asked: dict[str, Any] = {"partition": 0, "current_leader_epoch": -1, "position": 0}
    asked |= {"snapshot_id": {"end_offset": BEYOND, "epoch": 1}, **options}
    fields["topics"] = [{"name": topic, "partitions": [asked]}]
    return ask_voter(talk, "FetchSnapshot", version, node, **fields)


@cluster_case("FetchSnapshot", 0, 1)
def that_does_not_exist(talk: ClusterTalk, version: int) -> None:
    """The leader has no such snapshot; a follower has none to give; epochs are checked."""
    current, leader = talk.quorum_epoch(), talk.active_controller()
    standby = talk.standby_controller()
    for node, claimed in ((leader, current), (leader, -1), (leader, 0), (standby, current)):
        fetch_snapshot(talk, version, node, current_leader_epoch=claimed)


@cluster_case("FetchSnapshot", 0, 1)
def of_something_else(talk: ClusterTalk, version: int) -> None:
    """Another cluster, another topic, another partition."""
    leader = talk.active_controller()
    fetch_snapshot(talk, version, leader, cluster_id=CLUSTER_ELSEWHERE)
    fetch_snapshot(talk, version, leader, topic="tides")
    fetch_snapshot(talk, version, leader, partition=1)


QUORUM = [{"topic_name": METADATA_TOPIC, "partitions": [{"partition_index": 0}]}]


@cluster_case("DescribeQuorum", 0, 1, 2)
def of_three_voters(talk: ClusterTalk, version: int) -> None:
    """Every node passes the question on to the leader."""
    for node in NODES:
        talk.ask("DescribeQuorum", version, on=node, topics=QUORUM)


@cluster_case("Fetch", 17, 18)
def of_the_metadata_log(talk: ClusterTalk, version: int) -> None:
    """The cluster id, the leader epoch and the end of the last fetched epoch are checked."""
    current, leader = talk.quorum_epoch(), talk.active_controller()
    fetch_metadata(talk, version, leader, cluster_id=CLUSTER_ELSEWHERE)
    for claimed in (-1, 0, current + 9):
        fetch_metadata(talk, version, leader, current_leader_epoch=claimed)
    fetch_metadata(talk, version, talk.standby_controller(), current_leader_epoch=current)
    for offset, last_epoch in ((BEYOND, current), (1, -1), (-1, 0), (BEYOND, current + 9)):
        asked = {"fetch_offset": offset, "last_fetched_epoch": last_epoch}
        fetch_metadata(talk, version, leader, current_leader_epoch=current, **asked)


def fetch_metadata(talk: ClusterTalk, version: int, node: int, **options: Any) -> None:
    fields = {"cluster_id": options.pop("cluster_id", None), "max_wait_ms": 0}
    asked = {"partition": 0, "current_leader_epoch": -1, "fetch_offset": 0}
    asked |= {"last_fetched_epoch": 0, "partition_max_bytes": 1, **options}
    fields["topics"] = [{"topic_id": METADATA_TOPIC_ID, "partitions": [asked]}]
    ask_voter(talk, "Fetch", version, node, **fields)
