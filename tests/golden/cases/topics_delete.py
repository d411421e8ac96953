"""DeleteTopics: by name, by id, twice, and never having been there."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import case
from tests.golden.talk import MADE_UP_ID, Talk

EDGES = (1, 6)


def delete(talk: Talk, version: int, *names: str) -> Any:
    if version >= 6:
        topics = [{"name": name} for name in names]
        return talk.ask("DeleteTopics", version, topics=topics, timeout_ms=10_000)
    return talk.ask("DeleteTopics", version, topic_names=list(names), timeout_ms=10_000)


@case("DeleteTopics", 1, 3, 4, 5, 6)
def by_name(talk: Talk, version: int) -> None:
    """A topic is deleted and unknown afterwards."""
    topic = talk.new_topic()
    delete(talk, version, topic.name)
    talk.wait_until_gone(topic.name)
    topics = [{"name": topic.name}]
    talk.ask("Metadata", 12, topics=topics, allow_auto_topic_creation=False)


@case("DeleteTopics", 1, 5, 6)
def that_does_not_exist(talk: Talk, version: int) -> None:
    """A name that no topic has."""
    delete(talk, version, talk.name("missing"))


@case("DeleteTopics", 1, 5, 6)
def one_twice(talk: Talk, version: int) -> None:
    """The same name twice in one request."""
    topic = talk.new_topic()
    delete(talk, version, topic.name, topic.name)


@case("DeleteTopics", *EDGES)
def several(talk: Talk, version: int) -> None:
    """Each topic has its own outcome."""
    first, second = talk.new_topic("first"), talk.new_topic("second")
    delete(talk, version, first.name, talk.name("missing"), second.name)


@case("DeleteTopics", *EDGES)
def none(talk: Talk, version: int) -> None:
    """A request that names nothing."""
    delete(talk, version)


@case("DeleteTopics", *EDGES)
def with_an_invalid_name(talk: Talk, version: int) -> None:
    """A name that no topic can have is simply unknown."""
    delete(talk, version, "no spaces", "")


@case("DeleteTopics", 6)
def by_id(talk: Talk, version: int) -> None:
    """A topic by its id."""
    topic = talk.new_topic()
    topics = [{"name": None, "topic_id": topic.id}]
    talk.ask("DeleteTopics", version, topics=topics, timeout_ms=10_000)


@case("DeleteTopics", 6)
def by_an_unknown_id(talk: Talk, version: int) -> None:
    """An id that no topic has."""
    topics = [{"name": None, "topic_id": MADE_UP_ID}]
    talk.ask("DeleteTopics", version, topics=topics, timeout_ms=10_000)


@case("DeleteTopics", 6)
def by_name_and_id(talk: Talk, version: int) -> None:
    """Name and id at once are refused."""
    topic = talk.new_topic()
    topics = [{"name": topic.name, "topic_id": topic.id}]
    talk.ask("DeleteTopics", version, topics=topics, timeout_ms=10_000)


@case("DeleteTopics", 6)
def by_neither_name_nor_id(talk: Talk, version: int) -> None:
    """Neither a name nor an id."""
    topics = [{"name": None, "topic_id": bytes(16)}]
    talk.ask("DeleteTopics", version, topics=topics, timeout_ms=10_000)


@case("DeleteTopics", 6)
def one_by_name_and_by_id(talk: Talk, version: int) -> None:
    """The same topic by name and by id in one request."""
    topic = talk.new_topic()
    topics = [{"name": topic.name}, {"name": None, "topic_id": topic.id}]
    talk.ask("DeleteTopics", version, topics=topics, timeout_ms=10_000)


@case("DeleteTopics", 6)
def and_make_it_again(talk: Talk, version: int) -> None:
    """The name can be used again at once, with another id and an empty log."""
    topic = talk.new_topic()
    talk.fill(topic)
    delete(talk, version, topic.name)
    talk.wait_until_gone(topic.name)
    talk.new_topic()
    asked = [{"partition_index": 0, "timestamp": -1}]
    topics = [{"name": topic.name, "partitions": asked}]
    talk.ask("ListOffsets", 7, replica_id=-1, topics=topics)
    talk.ask("Metadata", 12, topics=[{"name": topic.name}])
