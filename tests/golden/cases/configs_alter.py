"""IncrementalAlterConfigs: settings set, removed, appended to and subtracted from."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.configs import BROKER, BROKER_ID, TOPIC, describe
from tests.golden.cases.registry import case
from tests.golden.talk import Talk

SET, DELETE, APPEND, SUBTRACT = range(4)
EDGES = (0, 1)

Change = tuple[str, int, str | None]


def alter(talk: Talk, version: int, kind: int, name: str, *changes: Change, **options: Any) -> None:
    configs = [
        {"name": key, "config_operation": operation, "value": value}
        for key, operation, value in changes
    ]
    resource = {"resource_type": kind, "resource_name": name, "configs": configs}
    talk.ask("IncrementalAlterConfigs", version, resources=[resource], **options)


def alter_topic(talk: Talk, version: int, *changes: Change, **before: str) -> None:
    """Change a fresh topic, then tell what the changed settings are."""
    configs = {key.replace("_", "."): value for key, value in before.items()}
    topic = talk.new_topic(configs=configs)
    alter(talk, version, TOPIC, topic.name, *changes)
    talk.wait_for_settings()
    keys = sorted({key for key, _, _ in changes})
    describe(talk, 4, TOPIC, topic.name, keys, include_synonyms=True)


@case("IncrementalAlterConfigs", *EDGES)
def set_a_topic_setting(talk: Talk, version: int) -> None:
    """A setting becomes the topic's own."""
    alter_topic(talk, version, ("retention.ms", SET, "5000"))


@case("IncrementalAlterConfigs", *EDGES)
def set_to_the_default(talk: Talk, version: int) -> None:
    """A setting set to its default is the topic's own all the same."""
    alter_topic(talk, version, ("retention.ms", SET, "604800000"))


@case("IncrementalAlterConfigs", *EDGES)
def delete_a_topic_setting(talk: Talk, version: int) -> None:
    """Without its own value a topic follows the broker again."""
    alter_topic(talk, version, ("retention.ms", DELETE, None), retention_ms="1000")


@case("IncrementalAlterConfigs", *EDGES)
def delete_what_is_not_set(talk: Talk, version: int) -> None:
    """Removing what is not there does no harm."""
    alter_topic(talk, version, ("retention.ms", DELETE, None))


@case("IncrementalAlterConfigs", *EDGES)
def delete_with_a_value(talk: Talk, version: int) -> None:
    """The value of a removal is of no interest."""
    alter_topic(talk, version, ("retention.ms", DELETE, "9"), retention_ms="1000")


@case("IncrementalAlterConfigs", *EDGES)
def append_to_a_list(talk: Talk, version: int) -> None:
    """A list grows."""
    alter_topic(talk, version, ("cleanup.policy", APPEND, "compact"))


@case("IncrementalAlterConfigs", *EDGES)
def append_what_is_there(talk: Talk, version: int) -> None:
    """What is there already is not appended again."""
    alter_topic(talk, version, ("cleanup.policy", APPEND, "delete"), cleanup_policy="delete")


@case("IncrementalAlterConfigs", *EDGES)
def subtract_from_a_list(talk: Talk, version: int) -> None:
    """A list shrinks."""
    change = ("cleanup.policy", SUBTRACT, "delete")
    alter_topic(talk, version, change, cleanup_policy="compact,delete")


@case("IncrementalAlterConfigs", 1)
def subtract_what_is_not_there(talk: Talk, version: int) -> None:
    """Subtracting what is not in the list changes nothing."""
    change = ("cleanup.policy", SUBTRACT, "compact")
    alter_topic(talk, version, change, cleanup_policy="delete")


@case("IncrementalAlterConfigs", 1)
def subtract_from_the_default(talk: Talk, version: int) -> None:
    """Subtracting from a list that the topic has by default."""
    alter_topic(talk, version, ("cleanup.policy", SUBTRACT, "delete"))


@case("IncrementalAlterConfigs", *EDGES)
def append_to_a_number(talk: Talk, version: int) -> None:
    """Only lists can be appended to."""
    alter_topic(talk, version, ("retention.ms", APPEND, "5"))


@case("IncrementalAlterConfigs", 1)
def subtract_from_a_number(talk: Talk, version: int) -> None:
    """Only lists can be subtracted from."""
    alter_topic(talk, version, ("retention.ms", SUBTRACT, "5"))


@case("IncrementalAlterConfigs", *EDGES)
def unknown_operation(talk: Talk, version: int) -> None:
    """An operation that nobody has heard of."""
    alter_topic(talk, version, ("retention.ms", 9, "5"))


@case("IncrementalAlterConfigs", *EDGES)
def set_to_null(talk: Talk, version: int) -> None:
    """A setting cannot be set to null."""
    alter_topic(talk, version, ("retention.ms", SET, None))


@case("IncrementalAlterConfigs", *EDGES)
def set_to_a_bad_value(talk: Talk, version: int) -> None:
    """A value that the setting cannot have."""
    alter_topic(talk, version, ("retention.ms", SET, "soon"))


@case("IncrementalAlterConfigs", 1)
def set_to_bad_values(talk: Talk, version: int) -> None:
    """Values of the right type that are out of range or not among the allowed ones."""
    topic = talk.new_topic()
    for key, value in (
        ("cleanup.policy", "burn"),
        ("min.insync.replicas", "0"),
        ("retention.ms", "-2"),
        ("segment.bytes", "10"),
        ("compression.type", "zip"),
        ("message.timestamp.type", "Sometime"),
        ("unclean.leader.election.enable", "perhaps"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("flush.messages", "0"),
        ("compression.gzip.level", "99"),
        ("local.retention.ms", "-3"),
        ("remote.storage.enable", "true"),
    ):
        alter(talk, version, TOPIC, topic.name, (key, SET, value))


@case("IncrementalAlterConfigs", *EDGES)
def set_an_unknown_setting(talk: Talk, version: int) -> None:
    """A setting that does not exist."""
    alter_topic(talk, version, ("no.such.setting", SET, "1"))


@case("IncrementalAlterConfigs", *EDGES)
def good_and_bad_together(talk: Talk, version: int) -> None:
    """One bad change refuses all changes of its resource."""
    alter_topic(talk, version, ("retention.ms", SET, "5000"), ("segment.bytes", SET, "x"))


@case("IncrementalAlterConfigs", *EDGES)
def one_setting_twice(talk: Talk, version: int) -> None:
    """The same setting twice in one request."""
    alter_topic(talk, version, ("retention.ms", SET, "1"), ("retention.ms", SET, "2"))


@case("IncrementalAlterConfigs", *EDGES)
def without_changes(talk: Talk, version: int) -> None:
    """A resource without any change."""
    alter(talk, version, TOPIC, talk.new_topic().name)


@case("IncrementalAlterConfigs", *EDGES)
def only_validated(talk: Talk, version: int) -> None:
    """With validate_only nothing changes."""
    topic = talk.new_topic()
    alter(talk, version, TOPIC, topic.name, ("retention.ms", SET, "5000"), validate_only=True)
    alter(talk, version, TOPIC, topic.name, ("retention.ms", SET, "soon"), validate_only=True)
    describe(talk, 4, TOPIC, topic.name, ["retention.ms"])


@case("IncrementalAlterConfigs", *EDGES)
def of_an_unknown_topic(talk: Talk, version: int) -> None:
    """A topic that does not exist."""
    alter(talk, version, TOPIC, talk.name("missing"), ("retention.ms", SET, "1"))


@case("IncrementalAlterConfigs", *EDGES)
def of_an_empty_topic_name(talk: Talk, version: int) -> None:
    """The empty name."""
    alter(talk, version, TOPIC, "", ("retention.ms", SET, "1"))


@case("IncrementalAlterConfigs", *EDGES)
def of_an_unknown_resource_type(talk: Talk, version: int) -> None:
    """A type of resource that nobody has heard of."""
    alter(talk, version, 77, "x", ("retention.ms", SET, "1"))


@case("IncrementalAlterConfigs", 1)
def of_one_resource_twice(talk: Talk, version: int) -> None:
    """The same resource twice in one request."""
    topic = talk.new_topic()
    change = {"name": "retention.ms", "config_operation": SET, "value": "1000"}
    resource = {"resource_type": TOPIC, "resource_name": topic.name, "configs": [change]}
    talk.ask("IncrementalAlterConfigs", version, resources=[resource, resource])


@case("IncrementalAlterConfigs", *EDGES)
def of_several_resources(talk: Talk, version: int) -> None:
    """Each resource has its own outcome."""
    topic = talk.new_topic()
    change = {"name": "retention.ms", "config_operation": SET, "value": "1000"}
    resources = [
        {"resource_type": TOPIC, "resource_name": name, "configs": [change]}
        for name in (topic.name, talk.name("missing"))
    ]
    talk.ask("IncrementalAlterConfigs", version, resources=resources)


@case("IncrementalAlterConfigs", *EDGES)
def without_resources(talk: Talk, version: int) -> None:
    """A request that names nothing."""
    talk.ask("IncrementalAlterConfigs", version, resources=[])


@case("IncrementalAlterConfigs", *EDGES)
def of_the_broker_read_only(talk: Talk, version: int) -> None:
    """A broker's read-only setting cannot be changed while it runs."""
    alter(talk, version, BROKER, BROKER_ID, ("num.partitions", SET, "3"))


@case("IncrementalAlterConfigs", 1)
def of_the_broker_only_validated(talk: Talk, version: int) -> None:
    """A dynamic broker setting would be accepted."""
    change = ("log.cleaner.threads", SET, "2")
    alter(talk, version, BROKER, BROKER_ID, change, validate_only=True)
    alter(talk, version, BROKER, "", change, validate_only=True)


@case("IncrementalAlterConfigs", 1)
def of_another_broker(talk: Talk, version: int) -> None:
    """A broker id that does not exist."""
    change = ("log.cleaner.threads", SET, "2")
    alter(talk, version, BROKER, "99", change, validate_only=True)


@case("IncrementalAlterConfigs", 1)
def of_a_broker_that_is_no_number(talk: Talk, version: int) -> None:
    """A broker's name must be its number."""
    alter(talk, version, BROKER, "one", ("log.cleaner.threads", SET, "2"))


@case("IncrementalAlterConfigs", 1)
def changes_what_a_topic_accepts(talk: Talk, version: int) -> None:
    """Values that contradict each other are refused whichever comes second."""
    topic = talk.new_topic(configs={"max.compaction.lag.ms": "100"})
    alter(talk, version, TOPIC, topic.name, ("min.compaction.lag.ms", SET, "200"))
