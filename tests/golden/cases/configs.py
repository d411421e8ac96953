"""DescribeConfigs: settings of topics and brokers, where they come from, what they are."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import case
from tests.golden.talk import Talk

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
VERSIONS = (1, 2, 3, 4)
EDGES = (1, 4)
BROKER_ID = "1"


def describe(
    talk: Talk, version: int, kind: int, name: str, keys: list[str] | None, **options: Any
) -> Any:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    return talk.ask("DescribeConfigs", version, resources=[resource], **options)


@case("DescribeConfigs", *VERSIONS)
def of_a_topic(talk: Talk, version: int) -> None:
    """Every setting of a topic, one of them its own."""
    topic = talk.new_topic(configs={"retention.ms": "1000"})
    describe(talk, version, TOPIC, topic.name, None)


@case("DescribeConfigs", *EDGES)
def of_a_topic_with_synonyms(talk: Talk, version: int) -> None:
    """Synonyms tell what would hold without the topic's own value."""
    topic = talk.new_topic(configs={"retention.ms": "1000", "cleanup.policy": "compact"})
    describe(talk, version, TOPIC, topic.name, None, include_synonyms=True)


@case("DescribeConfigs", 3, 4)
def of_a_topic_with_documentation(talk: Talk, version: int) -> None:
    """Every setting has a documentation."""
    keys = ["retention.ms", "compression.type"]
    topic = talk.new_topic()
    describe(talk, version, TOPIC, topic.name, keys, include_documentation=True)


@case("DescribeConfigs", *EDGES)
def of_chosen_settings(talk: Talk, version: int) -> None:
    """Only the settings asked for; an unknown name is left out."""
    keys = ["segment.bytes", "no.such.setting", "min.insync.replicas"]
    describe(talk, version, TOPIC, talk.new_topic().name, keys)


@case("DescribeConfigs", *EDGES)
def of_no_settings(talk: Talk, version: int) -> None:
    """An empty list of settings."""
    describe(talk, version, TOPIC, talk.new_topic().name, [])


@case("DescribeConfigs", *EDGES)
def of_one_setting_twice(talk: Talk, version: int) -> None:
    """The same setting twice."""
    describe(talk, version, TOPIC, talk.new_topic().name, ["retention.ms", "retention.ms"])


@case("DescribeConfigs", *EDGES)
def of_an_unknown_topic(talk: Talk, version: int) -> None:
    """A topic that does not exist."""
    describe(talk, version, TOPIC, talk.name("missing"), None)


@case("DescribeConfigs", *EDGES)
def of_an_invalid_topic_name(talk: Talk, version: int) -> None:
    """A name that no topic can have."""
    describe(talk, version, TOPIC, "no spaces", None)


@case("DescribeConfigs", *EDGES)
def of_an_empty_topic_name(talk: Talk, version: int) -> None:
    """The empty name."""
    describe(talk, version, TOPIC, "", None)


@case("DescribeConfigs", 4)
def of_the_broker(talk: Talk, version: int) -> None:
    """Every setting of a broker."""
    describe(talk, version, BROKER, BROKER_ID, None)


@case("DescribeConfigs", 4)
def of_the_broker_with_synonyms(talk: Talk, version: int) -> None:
    """Some settings of a broker with their synonyms."""
    keys = ["log.retention.ms", "log.retention.hours", "message.max.bytes", "num.partitions"]
    keys += ["log.segment.bytes", "log.cleanup.policy", "compression.type", "log.roll.ms"]
    describe(talk, version, BROKER, BROKER_ID, keys, include_synonyms=True)


@case("DescribeConfigs", *EDGES)
def of_chosen_settings_of_the_broker(talk: Talk, version: int) -> None:
    """Only the settings asked for."""
    keys = ["node.id", "num.partitions", "auto.create.topics.enable", "no.such.setting"]
    describe(talk, version, BROKER, BROKER_ID, keys)


@case("DescribeConfigs", *EDGES)
def of_all_brokers(talk: Talk, version: int) -> None:
    """The empty broker name asks for the cluster's defaults that were set."""
    describe(talk, version, BROKER, "", None)


@case("DescribeConfigs", *EDGES)
def of_another_broker(talk: Talk, version: int) -> None:
    """A broker id that is not this broker's."""
    describe(talk, version, BROKER, "99", None)


@case("DescribeConfigs", *EDGES)
def of_a_broker_that_is_no_number(talk: Talk, version: int) -> None:
    """A broker's name must be its number."""
    describe(talk, version, BROKER, "one", None)


@case("DescribeConfigs", *EDGES)
def of_an_unknown_resource_type(talk: Talk, version: int) -> None:
    """A type of resource that nobody has heard of."""
    describe(talk, version, 77, "x", None)


@case("DescribeConfigs", 4)
def of_resource_type_zero(talk: Talk, version: int) -> None:
    """The unknown type itself."""
    describe(talk, version, 0, "x", None)


@case("DescribeConfigs", *EDGES)
def of_several_resources(talk: Talk, version: int) -> None:
    """Each resource has its own outcome."""
    topic = talk.new_topic()
    resources = [
        {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
        for kind, name, keys in (
            (TOPIC, topic.name, ["retention.ms"]),
            (TOPIC, talk.name("missing"), ["retention.ms"]),
            (BROKER, BROKER_ID, ["num.partitions"]),
        )
    ]
    talk.ask("DescribeConfigs", version, resources=resources)


@case("DescribeConfigs", *EDGES)
def without_resources(talk: Talk, version: int) -> None:
    """A request that names nothing."""
    talk.ask("DescribeConfigs", version, resources=[])


@case("DescribeConfigs", 4)
def after_a_change(talk: Talk, version: int) -> None:
    """A changed setting is told as the topic's own."""
    topic = talk.new_topic()
    talk.alter(topic, retention_ms="777")
    describe(talk, version, TOPIC, topic.name, ["retention.ms"], include_synonyms=True)
