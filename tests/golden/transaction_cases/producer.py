"""The usual requests of a transactional producer in few words, each a recorded step.

All of them are repeated while the coordinator is busy with the markers of the last transaction:
Kafka answers CONCURRENT_TRANSACTIONS then, and when it stops doing so is chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from tests.golden.batches import batch, numbered
from tests.golden.cases.asking import fetching, producing
from tests.golden.talk import BUSY, Talk, Topic

TIMEOUT_MS = 60_000
BROKER = "broker"
"""The connection of a broker, for requests that only brokers send."""
NOT_ENOUGH_REPLICAS = 19
BUSY_TO_PRODUCERS = BUSY | {NOT_ENOUGH_REPLICAS}
"""What old versions of Produce say while a coordinator is busy."""
NEW_PROTOCOL_ENDS_FROM = 5
CLASSIC_PRODUCE, NEW_PRODUCE = 11, 13
CLASSIC_ADD = 3
CLASSIC_END, NEW_END = 4, 5
READ_COMMITTED = 1
COMPLETE = ("Empty", "CompleteCommit", "CompleteAbort")
COMMIT, ABORT = True, False


@dataclass(frozen=True, slots=True)
class Producer:
    """A transactional id, and the identity that it was given."""

    name: str
    id: int
    epoch: int

    def with_epoch(self, epoch: int) -> Producer:
        return replace(self, epoch=epoch)


def init(talk: Talk, version: int, name: str | None = None, **fields: Any) -> Producer:
    """InitProducerId with a transactional id, by default the only one of the case."""
    name = talk.name("x") if name is None else name
    asked = {"transactional_id": name, "transaction_timeout_ms": TIMEOUT_MS, **fields}
    answer = talk.ask_patiently("InitProducerId", version, **asked)
    return Producer(name, answer["producer_id"], answer["producer_epoch"])


def init_again(talk: Talk, version: int, producer: Producer, **fields: Any) -> Producer:
    """InitProducerId by a producer that tells which id and epoch it has."""
    known = {"producer_id": producer.id, "producer_epoch": producer.epoch}
    return init(talk, version, producer.name, **{**known, **fields})


def add(talk: Talk, version: int, producer: Producer, *partitions: tuple[str, int]) -> Any:
    """AddPartitionsToTxn as clients send it, below version 4."""
    return talk.ask_patiently(
        "AddPartitionsToTxn",
        version,
        v3_and_below_transactional_id=producer.name,
        v3_and_below_producer_id=producer.id,
        v3_and_below_producer_epoch=producer.epoch,
        v3_and_below_topics=by_topic(partitions),
    )


def transaction(
    producer: Producer, *partitions: tuple[str, int], verify_only: bool = False
) -> dict[str, Any]:
    """One transaction of an AddPartitionsToTxn that brokers send."""
    return {
        "transactional_id": producer.name,
        "producer_id": producer.id,
        "producer_epoch": producer.epoch,
        "verify_only": verify_only,
        "topics": by_topic(partitions),
    }


def add_many(talk: Talk, version: int, *transactions: dict[str, Any]) -> Any:
    """AddPartitionsToTxn as brokers send it, from version 4 on."""
    return talk.ask_patiently(
        "AddPartitionsToTxn", version, on=BROKER, transactions=list(transactions)
    )


def by_topic(partitions: tuple[tuple[str, int], ...]) -> list[dict[str, Any]]:
    indexes: dict[str, list[int]] = {}
    for name, index in partitions:
        indexes.setdefault(name, []).append(index)
    return [{"name": name, "partitions": found} for name, found in indexes.items()]


def add_group(talk: Talk, version: int, producer: Producer, group: str) -> Any:
    """AddOffsetsToTxn."""
    return talk.ask_patiently(
        "AddOffsetsToTxn",
        version,
        transactional_id=producer.name,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        group_id=group,
    )


def produce(
    talk: Talk,
    version: int,
    producer: Producer,
    topic: Topic,
    sequence: int,
    *,
    count: int = 1,
    partition: int = 0,
    timestamp_ms: int | None = None,
    **options: Any,
) -> Any:
    """One transactional batch to one partition."""
    records = written(talk, producer, sequence, count=count, timestamp_ms=timestamp_ms)
    return produce_records(
        talk, version, topic, records, partition, transactional_id=producer.name, **options
    )


def written(
    talk: Talk,
    producer: Producer,
    sequence: int,
    *,
    count: int = 1,
    timestamp_ms: int | None = None,
    **options: Any,
) -> bytes:
    """A batch of now, as markers are: one of long ago would end its segment before the marker."""
    return numbered(
        producer.id,
        producer.epoch,
        sequence,
        count,
        timestamp_ms=talk.clock_ms() if timestamp_ms is None else timestamp_ms,
        **{"transactional": True, **options},
    )


def fill(talk: Talk, topic: Topic, value: str, *, partition: int = 0) -> None:
    """A record of now that belongs to no transaction."""
    talk.fill(topic, batch(value, timestamp_ms=talk.clock_ms()), partition=partition)


def produce_records(
    talk: Talk, version: int, topic: Topic, records: bytes, partition: int = 0, **options: Any
) -> Any:
    """Any batch to one partition."""
    fields = producing(version, topic, records, partition, **options)
    return talk.ask_patiently("Produce", version, busy=BUSY_TO_PRODUCERS, **fields)


def end(talk: Talk, version: int, producer: Producer, committed: bool) -> Producer:
    """EndTxn; from version 5 on the answer has the epoch of the next transaction."""
    answer = talk.ask_patiently(
        "EndTxn",
        version,
        transactional_id=producer.name,
        producer_id=producer.id,
        producer_epoch=producer.epoch,
        committed=committed,
    )
    if version < NEW_PROTOCOL_ENDS_FROM or answer["error_code"]:
        return producer
    return Producer(producer.name, answer["producer_id"], answer["producer_epoch"])


def end_and_settle(talk: Talk, version: int, producer: Producer, committed: bool) -> Producer:
    """EndTxn, and then until all markers are written."""
    after = end(talk, version, producer, committed)
    settle(talk, producer)
    return after


def settle(talk: Talk, producer: Producer) -> None:
    """Until all markers of the last transaction are written."""

    def is_complete() -> bool:
        answer = talk.quietly("DescribeTransactions", 0, transactional_ids=[producer.name])
        return answer["transaction_states"][0]["transaction_state"] in COMPLETE

    talk.wait_for(is_complete, "the markers")


def read(talk: Talk, topic: Topic, *, version: int = 17, offset: int = 0, **options: Any) -> Any:
    """Fetch of committed records."""
    committed = {"isolation_level": READ_COMMITTED}
    fields = fetching(version, topic, offset, request=committed, **options)
    return talk.ask("Fetch", version, **fields)


def read_all(talk: Talk, topic: Topic, *, version: int = 17, offset: int = 0) -> Any:
    """Fetch of all records, committed or not."""
    return talk.ask("Fetch", version, **fetching(version, topic, offset))


def describe(talk: Talk, *producers: Producer) -> Any:
    """How transactions stand, as one more step of a case."""
    names = [producer.name for producer in producers]
    return talk.ask(
        "DescribeTransactions", 0, shown=with_sorted_partitions, transactional_ids=names
    )


def with_sorted_partitions(answer: dict[str, Any]) -> dict[str, Any]:
    """DescribeTransactions; the order of a transaction's partitions means nothing."""
    states = [
        {
            **state,
            "topics": [{**t, "partitions": sorted(t["partitions"])} for t in state["topics"]],
        }
        for state in answer["transaction_states"]
    ]
    return {**answer, "transaction_states": states}


def describe_producers(talk: Talk, topic: Topic, *indexes: int) -> Any:
    """What partitions remember of their producers."""
    topics = [{"name": topic.name, "partition_indexes": list(indexes or (0,))}]
    return talk.ask("DescribeProducers", 0, topics=topics)


def opened(
    talk: Talk, topic: Topic, *, init_version: int = 4, timestamp_ms: int | None = None
) -> Producer:
    """A classic transaction with one partition and one record."""
    producer = init(talk, init_version)
    add(talk, CLASSIC_ADD, producer, (topic.name, 0))
    produce(talk, CLASSIC_PRODUCE, producer, topic, 0, timestamp_ms=timestamp_ms)
    return producer


def newly_opened(talk: Talk, topic: Topic, *, init_version: int = 5) -> Producer:
    """The same in the protocol of KIP-890, where Produce adds its partition."""
    producer = init(talk, init_version)
    produce(talk, NEW_PRODUCE, producer, topic, 0)
    return producer


def nobody(talk: Talk) -> Producer:
    """A transactional id that the coordinator does not know, with a real producer id."""
    return Producer(talk.name("nobody"), talk.new_producer_id(), 0)
