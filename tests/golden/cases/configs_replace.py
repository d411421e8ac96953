"""AlterConfigs, which replaces all settings of a resource, and ListConfigResources."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.configs import BROKER, BROKER_ID, TOPIC, describe
from tests.golden.cases.registry import case
from tests.golden.talk import Talk

EDGES = (0, 2)
LOGGER, METRICS, GROUP = 8, 16, 32
KEYS = ["cleanup.policy", "retention.ms", "segment.bytes"]


def resource(kind: int, name: str, **settings: str | None) -> dict[str, Any]:
    configs = [{"name": key.replace("_", "."), "value": text} for key, text in settings.items()]
    return {"resource_type": kind, "resource_name": name, "configs": configs}


def replace(talk: Talk, version: int, kind: int, name: str, **settings: str | None) -> None:
    talk.ask("AlterConfigs", version, resources=[resource(kind, name, **settings)])


def replace_topic(talk: Talk, version: int, **settings: str | None) -> None:
    """Replace what a topic was created with, then tell what it has."""
    topic = talk.new_topic(configs={"retention.ms": "1000", "segment.bytes": "1048576"})
    replace(talk, version, TOPIC, topic.name, **settings)
    talk.wait_for_settings()
    describe(talk, 4, TOPIC, topic.name, KEYS, include_synonyms=True)


@case("AlterConfigs", *EDGES)
def what_is_not_named_goes(talk: Talk, version: int) -> None:
    """One setting is changed, one is new, and one goes back to its default."""
    replace_topic(talk, version, retention_ms="5000", cleanup_policy="compact")


@case("AlterConfigs", *EDGES)
def everything_goes(talk: Talk, version: int) -> None:
    """A resource without settings has none of its own."""
    replace_topic(talk, version)


@case("AlterConfigs", 2)
def the_same_again(talk: Talk, version: int) -> None:
    """Settings that the topic has already."""
    replace_topic(talk, version, retention_ms="1000", segment_bytes="1048576")


@case("AlterConfigs", *EDGES)
def null_value(talk: Talk, version: int) -> None:
    """A setting cannot be replaced by null; nothing changes."""
    replace_topic(talk, version, retention_ms=None)


@case("AlterConfigs", *EDGES)
def bad_value(talk: Talk, version: int) -> None:
    """A value that the setting cannot have; nothing changes."""
    replace_topic(talk, version, retention_ms="soon", cleanup_policy="compact")


@case("AlterConfigs", *EDGES)
def unknown_setting(talk: Talk, version: int) -> None:
    """A setting that does not exist; nothing changes."""
    replace_topic(talk, version, no_such_setting="1")


@case("AlterConfigs", *EDGES)
def one_setting_twice(talk: Talk, version: int) -> None:
    """The same setting twice in one resource."""
    named = resource(TOPIC, talk.new_topic().name, retention_ms="1000")
    named["configs"] *= 2
    talk.ask("AlterConfigs", version, resources=[named])


@case("AlterConfigs", 2)
def one_resource_twice(talk: Talk, version: int) -> None:
    """The same resource twice in one request, and another once."""
    named = resource(TOPIC, talk.new_topic("a").name, retention_ms="1000")
    other = resource(TOPIC, talk.new_topic("b").name, retention_ms="1000")
    talk.ask_in_vain("AlterConfigs", version, resources=[named, other, named])


@case("AlterConfigs", *EDGES)
def several_resources(talk: Talk, version: int) -> None:
    """Each resource has its own outcome."""
    names = (talk.new_topic().name, talk.name("missing"), "", "no spaces")
    resources = [resource(TOPIC, name, retention_ms="1000") for name in names]
    talk.ask("AlterConfigs", version, resources=resources)


@case("AlterConfigs", *EDGES)
def nothing_at_all(talk: Talk, version: int) -> None:
    """A request that names nothing."""
    talk.ask("AlterConfigs", version, resources=[])


@case("AlterConfigs", *EDGES)
def only_validated(talk: Talk, version: int) -> None:
    """With validate_only nothing changes."""
    topic = talk.new_topic(configs={"retention.ms": "1000"})
    for value in ("5000", "soon"):
        named = resource(TOPIC, topic.name, segment_bytes="1048576", retention_ms=value)
        talk.ask("AlterConfigs", version, resources=[named], validate_only=True)
    describe(talk, 4, TOPIC, topic.name, KEYS)


@case("AlterConfigs", *EDGES)
def other_resource_types(talk: Talk, version: int) -> None:
    """Loggers are no resources of this API, and some numbers nobody's."""
    for kind in (LOGGER, 77, 0):
        replace(talk, version, kind, BROKER_ID, root="DEBUG")


@case("AlterConfigs", *EDGES)
def of_the_broker(talk: Talk, version: int) -> None:
    """What may change while it runs, what may not, and values that make no sense."""
    for setting in ({"log_cleaner_threads": "2"}, {"num_partitions": "3"}, {"node_id": "2"}):
        named = resource(BROKER, BROKER_ID, **setting)
        talk.ask("AlterConfigs", version, resources=[named], validate_only=True)
    wrong = resource(BROKER, BROKER_ID, message_max_bytes="x")
    talk.ask("AlterConfigs", version, resources=[wrong], validate_only=True)


@case("AlterConfigs", 2)
def of_other_brokers(talk: Talk, version: int) -> None:
    """Another broker, none at all, and no number."""
    for name in ("99", "one", "-1"):
        named = resource(BROKER, name, log_cleaner_threads="2")
        talk.ask("AlterConfigs", version, resources=[named], validate_only=True)


@case("AlterConfigs", 2)
def of_the_minimum_in_sync(talk: Talk, version: int) -> None:
    """The cluster's minimum in-sync set can be set and not be left out; a broker's not be set."""
    for name in ("", BROKER_ID):
        for setting in ({"min_insync_replicas": "1"}, {"log_cleaner_threads": "2"}, {}):
            named = resource(BROKER, name, **setting)
            talk.ask("AlterConfigs", version, resources=[named], validate_only=True)


def own_topics(talk: Talk) -> Any:
    """Leaves out topics of other cases, and puts the rest in order."""

    def shown(answer: dict[str, Any]) -> dict[str, Any]:
        found = answer["config_resources"]
        own = [
            each
            for each in found
            if each.get("resource_type") != TOPIC or each["resource_name"].startswith(talk.name(""))
        ]
        return answer | {
            "config_resources": sorted(
                own, key=lambda each: (each.get("resource_type", 0), each["resource_name"])
            )
        }

    return shown


@case("ListConfigResources", 0)
def of_client_metrics(talk: Talk, version: int) -> None:
    """Version 0 lists client metrics, and there are none."""
    talk.ask("ListConfigResources", version)


@case("ListConfigResources", 1)
def of_each_type(talk: Talk, version: int) -> None:
    """Topics, brokers, their loggers, client metrics and groups one by one."""
    for name in ("a", "b"):
        talk.new_topic(name)
    for kind in (TOPIC, BROKER, LOGGER, METRICS, GROUP):
        talk.ask("ListConfigResources", version, shown=own_topics(talk), resource_types=[kind])


@case("ListConfigResources", 1)
def of_all_types(talk: Talk, version: int) -> None:
    """No type stands for every type; one that is asked for twice is listed once."""
    talk.new_topic()
    for kinds in ([], [BROKER, TOPIC, BROKER]):
        talk.ask("ListConfigResources", version, shown=own_topics(talk), resource_types=kinds)


@case("ListConfigResources", 1)
def of_unknown_types(talk: Talk, version: int) -> None:
    """One unknown type fails the whole."""
    for kinds in ([0], [77], [-1], [BROKER, 77]):
        talk.ask("ListConfigResources", version, resource_types=kinds)
