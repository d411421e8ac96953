"""InitProducerId and DescribeProducers: who producers are, and what partitions remember of them."""

from __future__ import annotations

from typing import Any

from tests.golden.batches import batch, numbered
from tests.golden.cases.registry import case
from tests.golden.talk import Talk

VERSIONS = (0, 1, 2, 3, 4, 5)
PID = 4711


@case("InitProducerId", *VERSIONS)
def of_an_idempotent_producer(talk: Talk, version: int) -> None:
    """Each call gives another id with epoch 0."""
    talk.ask("InitProducerId", version, transactional_id=None, transaction_timeout_ms=60_000)
    talk.ask("InitProducerId", version, transactional_id=None, transaction_timeout_ms=60_000)


@case("InitProducerId", 0, 5)
def of_an_idempotent_producer_without_a_timeout(talk: Talk, version: int) -> None:
    """The transaction timeout is of no interest to an idempotent producer."""
    talk.ask("InitProducerId", version, transactional_id=None, transaction_timeout_ms=-1)


@case("InitProducerId", 0, 5)
def with_an_empty_transactional_id(talk: Talk, version: int) -> None:
    """An empty transactional id is refused."""
    talk.ask("InitProducerId", version, transactional_id="", transaction_timeout_ms=60_000)


@case("InitProducerId", 3, 5)
def with_an_id_of_its_own(talk: Talk, version: int) -> None:
    """An idempotent producer that names an id and epoch gets a new id all the same."""
    talk.ask(
        "InitProducerId",
        version,
        transactional_id=None,
        transaction_timeout_ms=60_000,
        producer_id=talk.new_producer_id(),
        producer_epoch=0,
    )


@case("InitProducerId", 3, 5)
def with_an_id_but_no_producer_epoch(talk: Talk, version: int) -> None:
    """An id without an epoch."""
    fields: dict[str, Any]
    fields = {"transactional_id": None, "transaction_timeout_ms": 60_000, "producer_id": PID}
    talk.ask("InitProducerId", version, **fields)


@case("InitProducerId", 3, 5)
def with_a_producer_epoch_but_no_id(talk: Talk, version: int) -> None:
    """An epoch without an id."""
    fields: dict[str, Any]
    fields = {"transactional_id": None, "transaction_timeout_ms": 60_000, "producer_epoch": 2}
    talk.ask("InitProducerId", version, **fields)


@case("InitProducerId", 0, 5)
def of_a_transactional_producer(talk: Talk, version: int) -> None:
    """Before anybody asked for its coordinator, a transactional id has none."""
    name = talk.name("transaction")
    talk.ask("InitProducerId", version, transactional_id=name, transaction_timeout_ms=60_000)


def describe(talk: Talk, name: str, *indexes: int) -> Any:
    topics = [{"name": name, "partition_indexes": list(indexes)}]
    return talk.ask("DescribeProducers", 0, topics=topics)


@case("DescribeProducers")
def of_an_empty_partition(talk: Talk) -> None:
    """A partition that no producer wrote to."""
    describe(talk, talk.new_topic().name, 0)


@case("DescribeProducers")
def without_idempotence(talk: Talk) -> None:
    """A producer without an id is not remembered."""
    topic = talk.new_topic()
    talk.fill(topic, batch("a"))
    describe(talk, topic.name, 0)


@case("DescribeProducers")
def after_some_batches(talk: Talk) -> None:
    """The last sequence, the time of the last batch, the epoch."""
    topic = talk.new_topic()
    talk.fill(topic, numbered(PID, 2, 0, 3), numbered(PID, 2, 3), numbered(PID + 1, 0, 7))
    describe(talk, topic.name, 0)


@case("DescribeProducers")
def after_a_new_producer_epoch(talk: Talk) -> None:
    """Only the newest epoch of a producer is told."""
    topic = talk.new_topic()
    talk.fill(topic, numbered(PID, 0, 0, 3), numbered(PID, 1, 0))
    describe(talk, topic.name, 0)


@case("DescribeProducers")
def of_an_unknown_topic(talk: Talk) -> None:
    """A topic that does not exist."""
    describe(talk, talk.name("missing"), 0)


@case("DescribeProducers")
def of_a_missing_partition(talk: Talk) -> None:
    """Partition indexes that the topic has and has not."""
    describe(talk, talk.new_topic().name, 0, 4, -1)


@case("DescribeProducers")
def of_an_invalid_name(talk: Talk) -> None:
    """A name that no topic can have."""
    describe(talk, "no spaces", 0)


@case("DescribeProducers")
def of_one_partition_twice(talk: Talk) -> None:
    """The same partition twice in one request."""
    describe(talk, talk.new_topic().name, 0, 0)


@case("DescribeProducers")
def without_topics(talk: Talk) -> None:
    """A request that names nothing."""
    talk.ask("DescribeProducers", 0, topics=[])


@case("DescribeProducers")
def without_partitions(talk: Talk) -> None:
    """A topic without any partition."""
    describe(talk, talk.new_topic().name)
