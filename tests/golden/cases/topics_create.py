"""CreateTopics: counts, placements, names, settings, and asking only whether it would work."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import case
from tests.golden.talk import Talk

EDGES = (2, 7)


def create(talk: Talk, version: int, *topics: dict[str, Any], **request: Any) -> Any:
    full = [{"num_partitions": 1, "replication_factor": 1, **topic} for topic in topics]
    return talk.ask("CreateTopics", version, **{"topics": full, "timeout_ms": 10_000, **request})


@case("CreateTopics", 2, 3, 4, 5, 6, 7)
def one_topic(talk: Talk, version: int) -> None:
    """A topic with three partitions; from version 5 on the answer tells its settings."""
    create(talk, version, {"name": talk.name(), "num_partitions": 3})


@case("CreateTopics", *EDGES)
def that_exists(talk: Talk, version: int) -> None:
    """A topic that is there already."""
    create(talk, version, {"name": talk.new_topic().name})


@case("CreateTopics", *EDGES)
def only_validated(talk: Talk, version: int) -> None:
    """With validate_only nothing is made."""
    create(talk, version, {"name": talk.name()}, validate_only=True)
    topics = [{"name": talk.name()}]
    talk.ask("Metadata", 9, topics=topics, allow_auto_topic_creation=False)


@case("CreateTopics", *EDGES)
def that_exists_only_validated(talk: Talk, version: int) -> None:
    """Validation finds that the topic is there already."""
    create(talk, version, {"name": talk.new_topic().name}, validate_only=True)


@case("CreateTopics", *EDGES)
def zero_partitions(talk: Talk, version: int) -> None:
    """A topic needs a partition."""
    create(talk, version, {"name": talk.name(), "num_partitions": 0})


@case("CreateTopics", 2, 4, 7)
def default_partitions(talk: Talk, version: int) -> None:
    """-1 takes the broker's default (from version 4 on)."""
    create(talk, version, {"name": talk.name(), "num_partitions": -1})


@case("CreateTopics", *EDGES)
def negative_partitions(talk: Talk, version: int) -> None:
    """-2 partitions."""
    create(talk, version, {"name": talk.name(), "num_partitions": -2})


@case("CreateTopics", 2, 4, 7)
def default_replication_factor(talk: Talk, version: int) -> None:
    """-1 takes the broker's default (from version 4 on)."""
    create(talk, version, {"name": talk.name(), "replication_factor": -1})


@case("CreateTopics", *EDGES)
def zero_replicas(talk: Talk, version: int) -> None:
    """A partition needs a replica."""
    create(talk, version, {"name": talk.name(), "replication_factor": 0})


@case("CreateTopics", *EDGES)
def more_replicas_than_brokers(talk: Talk, version: int) -> None:
    """Two replicas need two brokers."""
    create(talk, version, {"name": talk.name(), "replication_factor": 2})


@case("CreateTopics", *EDGES)
def with_invalid_names(talk: Talk, version: int) -> None:
    """Names that no topic can have."""
    names = ("", ".", "..", "no spaces", "x" * 250, "umlaut-ä", "slash/slash")
    create(talk, version, *({"name": name} for name in names))


@case("CreateTopics", 7)
def with_the_longest_name(talk: Talk, version: int) -> None:
    """249 characters are allowed."""
    create(talk, version, {"name": talk.name("x").ljust(249, "x")})


@case("CreateTopics", 7)
def with_a_colliding_name(talk: Talk, version: int) -> None:
    """A dot and an underscore are the same in a metric's name."""
    talk.new_topic("with.dot")
    create(talk, version, {"name": talk.name("with_dot")})


@case("CreateTopics", *EDGES)
def twice_in_one_request(talk: Talk, version: int) -> None:
    """The same name twice spoils that name only."""
    names = (talk.name("twice"), talk.name("once"), talk.name("twice"))
    create(talk, version, *({"name": name} for name in names))


@case("CreateTopics", *EDGES)
def without_topics(talk: Talk, version: int) -> None:
    """A request that names nothing."""
    create(talk, version)


@case("CreateTopics", *EDGES)
def good_and_bad_ones(talk: Talk, version: int) -> None:
    """Each topic has its own outcome."""
    create(
        talk,
        version,
        {"name": talk.name("good")},
        {"name": talk.name("none"), "num_partitions": 0},
        {"name": "not valid!"},
    )


@case("CreateTopics", *EDGES)
def placed_by_hand(talk: Talk, version: int) -> None:
    """Explicit replicas in place of counts."""
    assignments = [{"partition_index": index, "broker_ids": [1]} for index in (0, 1)]
    create(talk, version, placed(talk, assignments))


def placed(talk: Talk, assignments: list[dict[str, Any]], **options: Any) -> dict[str, Any]:
    return {
        "name": talk.name(),
        "num_partitions": -1,
        "replication_factor": -1,
        "assignments": assignments,
        **options,
    }


@case("CreateTopics", *EDGES)
def placed_on_an_unknown_broker(talk: Talk, version: int) -> None:
    """A replica on a broker that does not exist."""
    create(talk, version, placed(talk, [{"partition_index": 0, "broker_ids": [9]}]))


@case("CreateTopics", *EDGES)
def placed_twice_on_one_broker(talk: Talk, version: int) -> None:
    """Two replicas of one partition on one broker."""
    create(talk, version, placed(talk, [{"partition_index": 0, "broker_ids": [1, 1]}]))


@case("CreateTopics", *EDGES)
def placed_nowhere(talk: Talk, version: int) -> None:
    """A partition with an empty list of replicas."""
    create(talk, version, placed(talk, [{"partition_index": 0, "broker_ids": []}]))


@case("CreateTopics", *EDGES)
def placed_with_a_gap(talk: Talk, version: int) -> None:
    """Partition indexes must be consecutive from 0."""
    assignments = [{"partition_index": index, "broker_ids": [1]} for index in (0, 2)]
    create(talk, version, placed(talk, assignments))


@case("CreateTopics", 7)
def placed_with_one_index_twice(talk: Talk, version: int) -> None:
    """The same partition index twice."""
    assignments = [{"partition_index": 0, "broker_ids": [1]}] * 2
    create(talk, version, placed(talk, assignments))


@case("CreateTopics", *EDGES)
def placed_and_counted(talk: Talk, version: int) -> None:
    """Explicit replicas and a count exclude each other."""
    assignments = [{"partition_index": 0, "broker_ids": [1]}]
    create(talk, version, placed(talk, assignments, num_partitions=1))
    create(talk, version, placed(talk, assignments, replication_factor=1))


@case("CreateTopics", 2, 5, 7)
def with_settings(talk: Talk, version: int) -> None:
    """Settings given at creation are the topic's own."""
    configs = [
        {"name": "retention.ms", "value": "1000"},
        {"name": "cleanup.policy", "value": "compact,delete"},
    ]
    create(talk, version, {"name": talk.name(), "configs": configs})


@case("CreateTopics", *EDGES)
def with_an_unknown_setting(talk: Talk, version: int) -> None:
    """A setting that does not exist."""
    configs = [{"name": "no.such.setting", "value": "1"}]
    create(talk, version, {"name": talk.name(), "configs": configs})


@case("CreateTopics", *EDGES)
def with_a_bad_value(talk: Talk, version: int) -> None:
    """Values that their settings cannot have."""
    bad = {
        "retention.ms": "soon",
        "cleanup.policy": "burn",
        "segment.bytes": "1",
        "compression.type": "zip",
        "min.insync.replicas": "0",
        "max.message.bytes": "-1",
    }
    topics = [
        {"name": talk.name(key.replace(".", "-")), "configs": [{"name": key, "value": value}]}
        for key, value in bad.items()
    ]
    create(talk, version, *topics)


@case("CreateTopics", *EDGES)
def with_a_null_value(talk: Talk, version: int) -> None:
    """A setting whose value is null."""
    configs = [{"name": "retention.ms", "value": None}]
    create(talk, version, {"name": talk.name(), "configs": configs})


@case("CreateTopics", 7)
def with_one_setting_twice(talk: Talk, version: int) -> None:
    """The same setting twice."""
    configs = [{"name": "retention.ms", "value": value} for value in ("1000", "2000")]
    create(talk, version, {"name": talk.name(), "configs": configs})


@case("CreateTopics", 7)
def with_an_empty_value(talk: Talk, version: int) -> None:
    """Empty values: allowed for lists of policies, not for numbers."""
    for key in ("cleanup.policy", "retention.ms"):
        configs = [{"name": key, "value": ""}]
        create(talk, version, {"name": talk.name(key.split(".")[0]), "configs": configs})


@case("CreateTopics", 7)
def with_values_that_contradict(talk: Talk, version: int) -> None:
    """min.compaction.lag.ms above max.compaction.lag.ms."""
    configs = [
        {"name": "min.compaction.lag.ms", "value": "10"},
        {"name": "max.compaction.lag.ms", "value": "5"},
    ]
    create(talk, version, {"name": talk.name(), "configs": configs})


@case("CreateTopics", 7)
def with_a_value_in_spaces(talk: Talk, version: int) -> None:
    """Spaces around a number do not matter."""
    configs = [{"name": "retention.ms", "value": " 1000 "}]
    create(talk, version, {"name": talk.name(), "configs": configs})


@case("CreateTopics", 7)
def with_settings_only_validated(talk: Talk, version: int) -> None:
    """Validation answers the settings that the topic would have."""
    configs = [{"name": "retention.bytes", "value": "5000"}]
    create(talk, version, {"name": talk.name(), "configs": configs}, validate_only=True)


@case("CreateTopics", 7)
def with_a_timeout_of_zero(talk: Talk, version: int) -> None:
    """A timeout of zero is over at once."""
    create(talk, version, {"name": talk.name()}, timeout_ms=0)


@case("CreateTopics", 7)
def reserved_for_the_cluster(talk: Talk, version: int) -> None:
    """The metadata log's own name."""
    create(talk, version, {"name": "__cluster_metadata"})


@case("CreateTopics", 7)
def too_many_partitions(talk: Talk, version: int) -> None:
    """More partitions than one request may make."""
    create(talk, version, {"name": talk.name(), "num_partitions": 10_001})
