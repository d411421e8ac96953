"""WriteTxnMarkers: what coordinators, and admins who abort a hanging transaction, send."""

from __future__ import annotations

from typing import Any

from tests.golden.cases.registry import transaction_case
from tests.golden.group_cases.members import ready
from tests.golden.talk import Talk, Topic
from tests.golden.transaction_cases.producer import (
    ABORT,
    BROKER,
    CLASSIC_ADD,
    CLASSIC_END,
    COMMIT,
    NEW_END,
    Producer,
    add,
    describe,
    describe_producers,
    end_and_settle,
    init,
    newly_opened,
    opened,
    produce_records,
    read,
    read_all,
    written,
)

VERSIONS = (1, 2)


def marker(
    producer_id: int,
    producer_epoch: int,
    topics: dict[str, list[int]],
    *,
    committed: bool = ABORT,
    **fields: Any,
) -> dict[str, Any]:
    """One marker for some partitions."""
    named = [{"name": name, "partition_indexes": indexes} for name, indexes in topics.items()]
    return {
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "transaction_result": committed,
        "topics": named,
        "coordinator_epoch": 0,
        **fields,
    }


def write(talk: Talk, version: int, *markers: dict[str, Any]) -> Any:
    return talk.ask_patiently("WriteTxnMarkers", version, on=BROKER, markers=list(markers))


def hanging(talk: Talk, topic: Topic) -> Producer:
    """An open transaction with one record, of which a marker of anybody is the end."""
    return opened(talk, topic)


@transaction_case("WriteTxnMarkers", *VERSIONS)
def that_abort(talk: Talk, version: int) -> None:
    """An open transaction is aborted without its coordinator."""
    topic = talk.new_topic()
    producer = hanging(talk, topic)
    write(talk, version, marker(producer.id, producer.epoch, {topic.name: [0]}))
    read(talk, topic)
    describe_producers(talk, topic)
    describe(talk, producer)


@transaction_case("WriteTxnMarkers", *VERSIONS)
def that_commit(talk: Talk, version: int) -> None:
    """An open transaction is committed without its coordinator."""
    topic = talk.new_topic()
    producer = hanging(talk, topic)
    ids = (producer.id, producer.epoch)
    write(talk, version, marker(*ids, {topic.name: [0]}, committed=COMMIT))
    read(talk, topic)
    describe_producers(talk, topic)


@transaction_case("WriteTxnMarkers", *VERSIONS)
def that_come_twice(talk: Talk, version: int) -> None:
    """A second marker is written as well."""
    topic = talk.new_topic()
    producer = hanging(talk, topic)
    for committed in (COMMIT, COMMIT, ABORT):
        ids = (producer.id, producer.epoch)
        write(talk, version, marker(*ids, {topic.name: [0]}, committed=committed))
    read(talk, topic)


@transaction_case("WriteTxnMarkers", *VERSIONS)
def for_a_producer_that_never_wrote(talk: Talk, version: int) -> None:
    """A marker in an empty partition; its producer is remembered."""
    topic = talk.new_topic()
    write(talk, version, marker(talk.new_producer_id(), 3, {topic.name: [0]}))
    read(talk, topic)
    describe_producers(talk, topic)


@transaction_case("WriteTxnMarkers", *VERSIONS)
def of_an_older_producer_epoch(talk: Talk, version: int) -> None:
    """A marker of an epoch before that of the open transaction."""
    topic = talk.new_topic()
    init(talk, 5)
    producer = hanging(talk, topic)
    write(talk, version, marker(producer.id, producer.epoch - 1, {topic.name: [0]}))
    describe_producers(talk, topic)


@transaction_case("WriteTxnMarkers", *VERSIONS)
def of_a_newer_producer_epoch(talk: Talk, version: int) -> None:
    """As a coordinator sends it after a bump."""
    topic = talk.new_topic()
    producer = hanging(talk, topic)
    write(talk, version, marker(producer.id, producer.epoch + 1, {topic.name: [0]}))
    read(talk, topic)
    describe_producers(talk, topic)


@transaction_case("WriteTxnMarkers", 2)
def of_the_new_protocol(talk: Talk, version: int) -> None:
    """Transaction version 2 wants an epoch above that of the transaction."""
    topic = talk.new_topic()
    producer = newly_opened(talk, topic)
    for epoch in (producer.epoch, producer.epoch + 1, producer.epoch + 1, producer.epoch):
        topics = {topic.name: [0]}
        write(talk, version, marker(producer.id, epoch, topics, transaction_version=2))
    read(talk, topic)
    describe_producers(talk, topic)


@transaction_case("WriteTxnMarkers", 2)
def of_a_protocol_that_nobody_knows(talk: Talk, version: int) -> None:
    """Transaction versions 1, 3 and -1."""
    topic = talk.new_topic()
    producer = newly_opened(talk, topic)
    for number in (1, 3, -1):
        ids = (producer.id, producer.epoch)
        write(talk, version, marker(*ids, {topic.name: [0]}, transaction_version=number))
    read(talk, topic)


@transaction_case("WriteTxnMarkers", *VERSIONS)
def of_an_older_coordinator_epoch(talk: Talk, version: int) -> None:
    """A coordinator that was replaced is fenced by the partition."""
    topic = talk.new_topic()
    producer = hanging(talk, topic)
    ids = (producer.id, producer.epoch)
    for epoch in (5, 4, 6, -1):
        write(talk, version, marker(*ids, {topic.name: [0]}, coordinator_epoch=epoch))
        describe_producers(talk, topic)


@transaction_case("WriteTxnMarkers", *VERSIONS)
def for_what_does_not_exist(talk: Talk, version: int) -> None:
    """A partition too many, and a topic that is not there, beside a good one."""
    topic = talk.new_topic()
    producer = hanging(talk, topic)
    topics = {topic.name: [0, 7], talk.name("missing"): [0]}
    write(talk, version, marker(producer.id, producer.epoch, topics))
    read(talk, topic)


@transaction_case("WriteTxnMarkers", *VERSIONS)
def of_many_producers(talk: Talk, version: int) -> None:
    """Two producers with partitions in common."""
    topic = talk.new_topic(partitions=2)
    one, two = talk.new_producer_id(), talk.new_producer_id()
    write(
        talk,
        version,
        marker(one, 0, {topic.name: [0, 1]}),
        marker(two, 1, {topic.name: [0]}, committed=COMMIT),
    )
    describe_producers(talk, topic, 0, 1)


@transaction_case("WriteTxnMarkers", *VERSIONS)
def of_nothing(talk: Talk, version: int) -> None:
    """No markers, a marker without topics, a topic without partitions."""
    topic = talk.new_topic()
    producer_id = talk.new_producer_id()
    write(talk, version)
    write(talk, version, marker(producer_id, 0, {}))
    write(talk, version, marker(producer_id, 0, {topic.name: []}))


@transaction_case("WriteTxnMarkers", *VERSIONS)
def for_the_offsets_topic(talk: Talk, version: int) -> None:
    """The group coordinator takes it."""
    ready(talk)
    write(talk, version, marker(talk.new_producer_id(), 0, {"__consumer_offsets": [0]}))


@transaction_case("WriteTxnMarkers", *VERSIONS)
def without_a_producer(talk: Talk, version: int) -> None:
    """Negative ids and epochs."""
    topic = talk.new_topic()
    write(talk, version, marker(talk.new_producer_id(), -1, {topic.name: [0]}))
    describe_producers(talk, topic)


@transaction_case("WriteTxnMarkers", 1)
def of_an_idempotent_producer(talk: Talk, version: int) -> None:
    """A producer without transactions gets a marker too; its sequence goes on."""
    topic = talk.new_topic()
    producer = Producer("", talk.new_producer_id(), 0)
    produce_records(talk, 11, topic, written(talk, producer, 0, transactional=False))
    write(talk, version, marker(producer.id, 0, {topic.name: [0]}))
    produce_records(talk, 11, topic, written(talk, producer, 1, transactional=False))
    read_all(talk, topic)
    describe_producers(talk, topic)


@transaction_case("WriteTxnMarkers", 1)
def before_the_coordinator_does(talk: Talk, version: int) -> None:
    """The coordinator ends the transaction later; the partition has two markers."""
    topic = talk.new_topic(partitions=2)
    producer = opened(talk, topic)
    add(talk, CLASSIC_ADD, producer, (topic.name, 1))
    write(talk, version, marker(producer.id, producer.epoch, {topic.name: [0]}))
    end_and_settle(talk, CLASSIC_END, producer, COMMIT)
    read(talk, topic)
    describe(talk, producer)


@transaction_case("WriteTxnMarkers", 2)
def before_the_new_coordinator_does(talk: Talk, version: int) -> None:
    """The same where the epoch is bumped."""
    topic = talk.new_topic()
    producer = newly_opened(talk, topic)
    ids = (producer.id, producer.epoch + 1)
    write(talk, version, marker(*ids, {topic.name: [0]}, transaction_version=2))
    end_and_settle(talk, NEW_END, producer, COMMIT)
    read(talk, topic)
    describe(talk, producer)
