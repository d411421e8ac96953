"""CreatePartitions: more partitions for topics that exist."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import case
from tests.golden.talk import Talk

EDGES = (0, 3)


def grow(talk: Talk, version: int, name: str, count: int, **options: Any) -> Any:
    topic = {"name": name, "count": count, "assignments": options.pop("assignments", None)}
    fields = {"topics": [topic], "timeout_ms": 10_000, **options}
    return talk.ask("CreatePartitions", version, **fields)


@case("CreatePartitions", 0, 1, 2, 3)
def more(talk: Talk, version: int) -> None:
    """A topic grows from one partition to three."""
    topic = talk.new_topic()
    grow(talk, version, topic.name, 3)
    talk.wait_for_partitions(topic.name, 3)
    talk.ask("Metadata", 12, topics=[{"name": topic.name}])


@case("CreatePartitions", *EDGES)
def fewer(talk: Talk, version: int) -> None:
    """A topic cannot shrink."""
    grow(talk, version, talk.new_topic(partitions=3).name, 2)


@case("CreatePartitions", *EDGES)
def as_many_as_there_are(talk: Talk, version: int) -> None:
    """The count that the topic has already."""
    grow(talk, version, talk.new_topic(partitions=2).name, 2)


@case("CreatePartitions", *EDGES)
def zero(talk: Talk, version: int) -> None:
    """No partitions at all."""
    grow(talk, version, talk.new_topic().name, 0)


@case("CreatePartitions", *EDGES)
def negative(talk: Talk, version: int) -> None:
    """A negative count."""
    grow(talk, version, talk.new_topic().name, -1)


@case("CreatePartitions", *EDGES)
def of_an_unknown_topic(talk: Talk, version: int) -> None:
    """A topic that does not exist."""
    grow(talk, version, talk.name("missing"), 2)


@case("CreatePartitions", *EDGES)
def only_validated(talk: Talk, version: int) -> None:
    """With validate_only nothing is made."""
    topic = talk.new_topic()
    grow(talk, version, topic.name, 2, validate_only=True)
    talk.ask("Metadata", 9, topics=[{"name": topic.name}])


@case("CreatePartitions", *EDGES)
def placed_by_hand(talk: Talk, version: int) -> None:
    """Explicit replicas for each new partition."""
    assignments = [{"broker_ids": [1]}, {"broker_ids": [1]}]
    grow(talk, version, talk.new_topic().name, 3, assignments=assignments)


@case("CreatePartitions", *EDGES)
def placed_for_too_few(talk: Talk, version: int) -> None:
    """One placement for two new partitions."""
    grow(talk, version, talk.new_topic().name, 3, assignments=[{"broker_ids": [1]}])


@case("CreatePartitions", 3)
def placed_for_too_many(talk: Talk, version: int) -> None:
    """Three placements for two new partitions."""
    grow(talk, version, talk.new_topic().name, 3, assignments=[{"broker_ids": [1]}] * 3)


@case("CreatePartitions", 3)
def placed_for_none(talk: Talk, version: int) -> None:
    """An empty list of placements is not the same as none."""
    grow(talk, version, talk.new_topic().name, 3, assignments=[])


@case("CreatePartitions", *EDGES)
def placed_on_an_unknown_broker(talk: Talk, version: int) -> None:
    """A replica on a broker that does not exist."""
    grow(talk, version, talk.new_topic().name, 2, assignments=[{"broker_ids": [9]}])


@case("CreatePartitions", 3)
def placed_with_another_replication_factor(talk: Talk, version: int) -> None:
    """New partitions with more replicas than the old ones."""
    grow(talk, version, talk.new_topic().name, 2, assignments=[{"broker_ids": [1, 1]}])


@case("CreatePartitions", 3)
def placed_nowhere(talk: Talk, version: int) -> None:
    """A new partition with an empty list of replicas."""
    grow(talk, version, talk.new_topic().name, 2, assignments=[{"broker_ids": []}])


@case("CreatePartitions", *EDGES)
def one_topic_twice(talk: Talk, version: int) -> None:
    """The same topic twice in one request."""
    topic = talk.new_topic()
    topics = [{"name": topic.name, "count": count} for count in (2, 3)]
    fields: dict[str, Any] = {"topics": [{**asked, "assignments": None} for asked in topics]}
    talk.ask("CreatePartitions", version, **fields, timeout_ms=10_000)


@case("CreatePartitions", *EDGES)
def without_topics(talk: Talk, version: int) -> None:
    """A request that names nothing."""
    talk.ask("CreatePartitions", version, topics=[], timeout_ms=10_000)
