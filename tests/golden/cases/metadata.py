"""Metadata: topics by name and id, all of them, and topics made by asking for them."""

from __future__ import annotations

from tests.golden.cases.registry import case
from tests.golden.talk import MADE_UP_ID, Talk

VERSIONS = (0, 1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 13)
EDGES = (0, 13)


@case("Metadata", *VERSIONS)
def of_one_topic(talk: Talk, version: int) -> None:
    """A topic with two partitions, and the broker that leads them."""
    topic = talk.new_topic(partitions=2)
    talk.ask("Metadata", version, topics=[{"name": topic.name}])


@case("Metadata", 4, 9, 10, 12, 13)
def of_an_unknown_topic(talk: Talk, version: int) -> None:
    """An unknown topic is not made where that is not allowed."""
    name = talk.name("missing")
    talk.ask("Metadata", version, topics=[{"name": name}], allow_auto_topic_creation=False)


@case("Metadata", 0, 1, 3)
def of_an_unknown_topic_before_one_could_forbid_it(talk: Talk, version: int) -> None:
    """Before version 4 asking for an unknown topic always makes it."""
    name = talk.name("asked")
    talk.ask("Metadata", version, topics=[{"name": name}])
    talk.wait_for_partitions(name, 1)
    talk.ask("Metadata", version, topics=[{"name": name}])


@case("Metadata", 4, 9, 13)
def makes_a_topic(talk: Talk, version: int) -> None:
    """Asking for an unknown topic makes it where that is allowed; a moment later it is there."""
    name = talk.name("asked")
    talk.ask("Metadata", version, topics=[{"name": name}], allow_auto_topic_creation=True)
    talk.wait_for_partitions(name, 1)
    talk.ask("Metadata", version, topics=[{"name": name}])


@case("Metadata", 0, 9, 13)
def of_an_invalid_name(talk: Talk, version: int) -> None:
    """A name that no topic can have."""
    talk.ask("Metadata", version, topics=[{"name": "no spaces"}])


@case("Metadata", 1, 13)
def of_an_empty_name(talk: Talk, version: int) -> None:
    """The empty name."""
    talk.ask("Metadata", version, topics=[{"name": ""}])


@case("Metadata", 13)
def of_a_name_that_is_too_long(talk: Talk, version: int) -> None:
    """250 characters are one too many."""
    talk.ask("Metadata", version, topics=[{"name": "x" * 250}])


@case("Metadata", 13)
def of_a_dot(talk: Talk, version: int) -> None:
    """A dot alone is not a topic name."""
    talk.ask("Metadata", version, topics=[{"name": "."}, {"name": ".."}])


@case("Metadata", 13)
def of_an_invalid_name_without_creation(talk: Talk, version: int) -> None:
    """An invalid name where nothing may be made."""
    topics = [{"name": "no spaces"}]
    talk.ask("Metadata", version, topics=topics, allow_auto_topic_creation=False)


@case("Metadata", 12, 13)
def by_topic_id(talk: Talk, version: int) -> None:
    """A topic by its id, with a null name."""
    topic = talk.new_topic()
    talk.ask("Metadata", version, topics=[{"topic_id": topic.id, "name": None}])


@case("Metadata", 12, 13)
def by_an_unknown_topic_id(talk: Talk, version: int) -> None:
    """An id that no topic has."""
    topics = [{"topic_id": MADE_UP_ID, "name": None}]
    talk.ask("Metadata", version, topics=topics, allow_auto_topic_creation=False)


@case("Metadata", 10, 11)
def by_topic_id_too_early(talk: Talk, version: int) -> None:
    """Versions 10 and 11 have the field but do not serve it."""
    topic = talk.new_topic()
    topics = [{"topic_id": topic.id, "name": None}]
    talk.ask("Metadata", version, topics=topics, allow_auto_topic_creation=False)


@case("Metadata", 12, 13)
def by_name_and_topic_id(talk: Talk, version: int) -> None:
    """A topic asked for by name and id at once."""
    topic = talk.new_topic()
    talk.ask("Metadata", version, topics=[{"topic_id": topic.id, "name": topic.name}])


@case("Metadata", 13)
def by_name_and_by_topic_id_mixed(talk: Talk, version: int) -> None:
    """One topic by name and one by id in one request."""
    first, second = talk.new_topic("first"), talk.new_topic("second")
    topics = [{"name": first.name}, {"topic_id": second.id, "name": None}]
    talk.ask("Metadata", version, topics=topics)


@case("Metadata", 13)
def by_null_name_and_no_topic_id(talk: Talk, version: int) -> None:
    """Neither a name nor an id."""
    talk.ask("Metadata", version, topics=[{"topic_id": bytes(16), "name": None}])


@case("Metadata", *EDGES)
def of_one_topic_twice(talk: Talk, version: int) -> None:
    """The same name twice is answered once."""
    topic = talk.new_topic()
    talk.ask("Metadata", version, topics=[{"name": topic.name}, {"name": topic.name}])


@case("Metadata", *EDGES)
def of_topics_known_and_unknown(talk: Talk, version: int) -> None:
    """Each topic has its own outcome."""
    first, second = talk.new_topic("first"), talk.new_topic("second", partitions=3)
    names = (second.name, "not valid!", first.name)
    talk.ask("Metadata", version, topics=[{"name": name} for name in names])


@case("Metadata", 1, 9, 13)
def of_no_topic(talk: Talk, version: int) -> None:
    """An empty list asks for the brokers only (from version 1 on)."""
    talk.ask("Metadata", version, topics=[])


@case("Metadata", 8, 10)
def with_authorized_operations(talk: Talk, version: int) -> None:
    """Without an authorizer every operation is allowed."""
    topic = talk.new_topic()
    talk.ask(
        "Metadata",
        version,
        topics=[{"name": topic.name}],
        include_cluster_authorized_operations=True,
        include_topic_authorized_operations=True,
    )


@case("Metadata", 13)
def with_authorized_operations_of_the_topic(talk: Talk, version: int) -> None:
    """The newest versions tell them for topics only."""
    topic = talk.new_topic()
    topics = [{"name": topic.name}]
    talk.ask("Metadata", version, topics=topics, include_topic_authorized_operations=True)


@case("Metadata", 13)
def of_an_internal_name_that_is_missing(talk: Talk, version: int) -> None:
    """A double underscore alone does not make a topic internal."""
    topic = talk.new_topic("__looks-internal")
    talk.ask("Metadata", version, topics=[{"name": topic.name}])


@case("Metadata", 13)
def after_deletion(talk: Talk, version: int) -> None:
    """A deleted topic is unknown by name and by id."""
    topic = talk.new_topic()
    talk.quietly("DeleteTopics", 6, topics=[{"name": topic.name}], timeout_ms=5000)
    talk.wait_until_gone(topic.name)
    for asked in ({"name": topic.name}, {"topic_id": topic.id, "name": None}):
        talk.ask("Metadata", version, topics=[asked], allow_auto_topic_creation=False)


@case("Metadata")
def null_topics_in_version_zero(talk: Talk) -> None:
    """Version 0 cannot say null: a count of -1 is malformed."""
    body = (-1).to_bytes(4, "big", signed=True)
    talk.throw("a topic count of -1", talk.header(3, 0, flexible=False) + body)


@case("Metadata", 0, 1)
def null_name_too_early(talk: Talk, version: int) -> None:
    """Before version 10 a topic's name cannot be null."""
    body = (1).to_bytes(4, "big") + (-1).to_bytes(2, "big", signed=True)
    talk.throw("a null name", talk.header(3, version, flexible=False) + body)
