"""ElectLeaders and ListPartitionReassignments where nothing is to be elected and nothing moves."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import case
from tests.golden.talk import Talk

VERSIONS = (0, 1, 2)
PREFERRED, UNCLEAN = 0, 1


def elect(
    talk: Talk, version: int, topics: list[dict[str, Any]] | None, kind: int = PREFERRED
) -> Any:
    fields: dict[str, Any] = {"topic_partitions": topics, "timeout_ms": 10_000}
    if version >= 1:
        fields["election_type"] = kind
    return talk.ask("ElectLeaders", version, **fields)


def partitions(topic: str, *indexes: int) -> dict[str, Any]:
    return {"topic": topic, "partitions": list(indexes)}


@case("ElectLeaders", *VERSIONS)
def of_a_preferred_leader(talk: Talk, version: int) -> None:
    """The preferred replica leads already."""
    topic = talk.new_topic(partitions=2)
    elect(talk, version, [partitions(topic.name, 0, 1)])


@case("ElectLeaders", 1, 2)
def unclean_where_a_leader_lives(talk: Talk, version: int) -> None:
    """An unclean election is for partitions without a leader only."""
    topic = talk.new_topic()
    elect(talk, version, [partitions(topic.name, 0)], UNCLEAN)


@case("ElectLeaders", *VERSIONS)
def of_an_unknown_topic(talk: Talk, version: int) -> None:
    """A topic that does not exist."""
    elect(talk, version, [partitions(talk.name("missing"), 0)])


@case("ElectLeaders", 0, 2)
def of_a_missing_partition(talk: Talk, version: int) -> None:
    """A partition index that the topic does not have, next to one that it has."""
    topic = talk.new_topic()
    elect(talk, version, [partitions(topic.name, 0, 7)])


@case("ElectLeaders", 1, 2)
def of_an_unknown_kind(talk: Talk, version: int) -> None:
    """A kind of election that nobody has heard of."""
    topic = talk.new_topic()
    elect(talk, version, [partitions(topic.name, 0)], 7)


@case("ElectLeaders", 0, 2)
def of_nothing(talk: Talk, version: int) -> None:
    """An empty list elects nowhere."""
    elect(talk, version, [])


@case("ElectLeaders", 2)
def without_partitions(talk: Talk, version: int) -> None:
    """A topic with an empty list of partitions."""
    elect(talk, version, [partitions(talk.new_topic().name)])


@case("ElectLeaders", 2)
def of_one_partition_twice(talk: Talk, version: int) -> None:
    """The same partition twice in one request."""
    elect(talk, version, [partitions(talk.new_topic().name, 0, 0)])


@case("ElectLeaders", *VERSIONS)
def everywhere(talk: Talk, version: int) -> None:
    """No list means all partitions; a topic that needs no election is named, its partitions not."""
    topic = talk.new_topic()

    def of_this_case(plain: Any) -> Any:
        results = [r for r in plain["replica_election_results"] if r["topic"] == topic.name]
        return {**plain, "replica_election_results": results}

    talk.ask("ElectLeaders", version, shown=of_this_case, topic_partitions=None, timeout_ms=10_000)


@case("ListPartitionReassignments", 0)
def of_everything(talk: Talk, version: int) -> None:
    """Nothing moves."""
    talk.new_topic()
    talk.ask("ListPartitionReassignments", version, topics=None, timeout_ms=10_000)


@case("ListPartitionReassignments", 0)
def of_a_topic(talk: Talk, version: int) -> None:
    """Partitions that do not move are not mentioned, nor are those that do not exist."""
    asked = {"name": talk.new_topic().name, "partition_indexes": [0, 7]}
    talk.ask("ListPartitionReassignments", version, topics=[asked], timeout_ms=10_000)


@case("ListPartitionReassignments", 0)
def of_a_missing_topic(talk: Talk, version: int) -> None:
    """Nor is a topic that does not exist."""
    asked = {"name": talk.name("missing"), "partition_indexes": [0]}
    talk.ask("ListPartitionReassignments", version, topics=[asked], timeout_ms=10_000)


@case("ListPartitionReassignments", 0)
def of_no_topic(talk: Talk, version: int) -> None:
    """An empty list asks for nothing."""
    talk.ask("ListPartitionReassignments", version, topics=[], timeout_ms=10_000)
