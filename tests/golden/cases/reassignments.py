"""AlterPartitionReassignments on one broker: what is refused, and what is there already.

And what kafka-reassign-partitions asks besides: log directories, and throttles of a broker.
"""

from __future__ import annotations

from typing import Any

from tests.golden.batches import batch
from tests.golden.cases.registry import case
from tests.golden.talk import Talk

VERSIONS = (0, 1)
NODE = 1
BROKER_RESOURCE, SET, DELETE = 4, 0, 1


def reassign(talk: Talk, version: int, topics: list[dict[str, Any]], **fields: Any) -> Any:
    return talk.ask(
        "AlterPartitionReassignments", version, topics=topics, timeout_ms=10_000, **fields
    )


def moves(topic: str, *targets: list[int] | None, index: int = 0) -> dict[str, Any]:
    partitions = [
        {"partition_index": index + place, "replicas": replicas}
        for place, replicas in enumerate(targets)
    ]
    return {"name": topic, "partitions": partitions}


@case("AlterPartitionReassignments", *VERSIONS)
def to_where_it_is(talk: Talk, version: int) -> None:
    """The broker that has it already."""
    reassign(talk, version, [moves(talk.new_topic().name, [NODE])])


@case("AlterPartitionReassignments", *VERSIONS)
def to_bad_replicas(talk: Talk, version: int) -> None:
    """No replica at all, one twice, one on a broker that does not exist, one below zero."""
    one = NODE
    topic = talk.new_topic(partitions=4)
    reassign(talk, version, [moves(topic.name, [], [one, one], [one, 99], [-1])])


@case("AlterPartitionReassignments", *VERSIONS)
def of_what_does_not_exist(talk: Talk, version: int) -> None:
    """An unknown topic, and a partition that a topic does not have."""
    target = [NODE]
    known = moves(talk.new_topic().name, target, index=7)
    reassign(talk, version, [moves(talk.name("missing"), target, None), known])


@case("AlterPartitionReassignments", *VERSIONS)
def cancelled_without_one(talk: Talk, version: int) -> None:
    """There is nothing to cancel."""
    reassign(talk, version, [moves(talk.new_topic().name, None)])


@case("AlterPartitionReassignments", *VERSIONS)
def of_nothing(talk: Talk, version: int) -> None:
    """No topics, and a topic without partitions."""
    reassign(talk, version, [])
    reassign(talk, version, [moves(talk.new_topic().name)])


def without_this_machine(plain: Any) -> Any:
    """Paths and disks are those of the machine; other topics those of other cases."""
    return {
        **plain,
        "results": [
            {key: value for key, value in result.items() if key in ("error_code", "topics")}
            for result in plain["results"]
        ],
    }


@case("DescribeLogDirs", 1, 5)
def of_a_topic(talk: Talk, version: int) -> None:
    """A log without records, and partitions that do not exist."""
    asked = {"topic": talk.new_topic().name, "partitions": [0, 7]}
    missing = {"topic": talk.name("missing"), "partitions": [0]}
    talk.ask("DescribeLogDirs", version, shown=without_this_machine, topics=[asked, missing])


@case("DescribeLogDirs", 1, 5)
def of_no_topic(talk: Talk, version: int) -> None:
    """Directories without anything."""
    talk.ask("DescribeLogDirs", version, shown=without_this_machine, topics=[])


@case("DescribeLogDirs", 1, 5)
def of_every_log(talk: Talk, version: int) -> None:
    """Null stands for everything: two partitions, one with a record."""
    topic = talk.new_topic(partitions=2)
    talk.fill(topic, batch("tide"), partition=1)

    def shown(plain: Any) -> Any:
        answer = without_this_machine(plain)
        for result in answer["results"]:
            result["topics"] = [each for each in result["topics"] if each["name"] == topic.name]
            for each in result["topics"]:
                each["partitions"].sort(key=lambda partition: partition["partition_index"])
        return answer

    talk.ask("DescribeLogDirs", version, shown=shown, topics=None)


@case("DescribeLogDirs", 1, 5)
def of_one_topic_twice(talk: Talk, version: int) -> None:
    """The same partition twice, and a topic without partitions."""
    name = talk.new_topic().name
    asked = [{"topic": name, "partitions": partitions} for partitions in ([0, 0], [0], [])]
    talk.ask("DescribeLogDirs", version, shown=without_this_machine, topics=asked)


@case("IncrementalAlterConfigs", 1)
def of_replication_throttles(talk: Talk, version: int) -> None:
    """A rate, no number, a rate below zero; and back to none."""
    steps = [("1000", SET), ("x", SET), ("-1", SET), (None, DELETE)]
    for name in ("leader.replication.throttled.rate", "follower.replication.throttled.rate"):
        for value, operation in steps:
            config = {"name": name, "config_operation": operation, "value": value}
            resource = {
                "resource_type": BROKER_RESOURCE,
                "resource_name": str(NODE),
                "configs": [config],
            }
            talk.ask("IncrementalAlterConfigs", version, resources=[resource], validate_only=False)
