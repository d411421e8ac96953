"""Transactions of unmodified clients behind one face: a producer, a member of a group, a reader.

Here is the face, and librdkafka; `python_transactions.py` and `java_transactions.py` have others.

`send` and everything after it come back when the broker has answered. What a library refuses is
`Refused`, with the name that the library gives to it; `is_fenced` says whether that is the end of
this producer, because another one has its transactional id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, Protocol

import confluent_kafka

from tests.process.waiting import PATIENCE_S, wait_until
from tests.process.wire import NO_GROUP

TIMEOUT_MS = 60_000
"""Kafka's default `transaction.timeout.ms`."""
POLL_S = 0.1
RECORDS_PER_POLL = 500
FETCH_WAIT_MS = 50
"""Of readers, so that they notice the end soon."""
COMMITTED, UNCOMMITTED = "read_committed", "read_uncommitted"


class Refused(Exception):
    """A client did not do what it was asked for."""

    def __init__(self, name: str, *, is_fenced: bool = False) -> None:
        super().__init__(name)
        self.name = name
        self.is_fenced = is_fenced


class Found(NamedTuple):
    """A record that an application was given."""

    partition: int
    offset: int
    value: str


class Member(Protocol):
    """A consumer in a group, which owns all partitions of its topic."""

    group: str

    def take(self, count: int) -> list[Found]:
        """So many records, and no more."""

    def close(self) -> None: ...


class TransactionalProducer(Protocol):
    """What Kafka's own producer has, by its names."""

    def init(self) -> None: ...
    def begin(self) -> None: ...
    def send(self, topic: str, value: str, *, partition: int = 0) -> None: ...
    def send_offsets(self, topic: str, next_offsets: Mapping[int, int], of: Member) -> None: ...
    def commit(self) -> None: ...
    def abort(self) -> None: ...

    def close(self) -> None:
        """Gone without a word to the broker, as far as the library can."""


class TransactionalClient(Protocol):
    """A library."""

    name: str

    def producer(
        self, servers: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS
    ) -> TransactionalProducer: ...

    def member(self, servers: str, topic: str, group: str) -> Member: ...

    def read(
        self,
        servers: str,
        topic: str,
        *,
        isolation: str = COMMITTED,
        partitions: int = 1,
        rack: str = "",
    ) -> list[Found]:
        """All that a reader of this kind can get now, in the order of partitions and offsets."""


# librdkafka


_RDKAFKA_FENCED = (
    confluent_kafka.KafkaError._FENCED,
    confluent_kafka.KafkaError.PRODUCER_FENCED,
    confluent_kafka.KafkaError.INVALID_PRODUCER_EPOCH,
)


class _LibrdkafkaProducer:
    def __init__(self, servers: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": transactional_id,
                "transaction.timeout.ms": timeout_ms,
                "message.timeout.ms": timeout_ms,
                "linger.ms": 0,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )

    def init(self) -> None:
        self._call(lambda: self._producer.init_transactions(PATIENCE_S))

    def begin(self) -> None:
        self._call(self._producer.begin_transaction)

    def send(self, topic: str, value: str, *, partition: int = 0) -> None:
        """Without a callback: confluent-kafka raises a fatal error in the midst of one. What else
        goes wrong with a record, the commit tells."""

        try:
            self._producer.produce(topic, value, partition=partition)
            assert self._producer.flush(PATIENCE_S) == 0
        except confluent_kafka.KafkaException as failure:
            raise _rdkafka_refusal(failure.args[0]) from failure

    def send_offsets(self, topic: str, next_offsets: Mapping[int, int], of: Member) -> None:
        assert isinstance(of, _LibrdkafkaMember)
        offsets = [
            confluent_kafka.TopicPartition(topic, index, offset)
            for index, offset in next_offsets.items()
        ]
        metadata = of.consumer.consumer_group_metadata()
        self._call(
            lambda: self._producer.send_offsets_to_transaction(offsets, metadata, PATIENCE_S)
        )

    def commit(self) -> None:
        self._call(lambda: self._producer.commit_transaction(PATIENCE_S))

    def abort(self) -> None:
        self._call(lambda: self._producer.abort_transaction(PATIENCE_S))

    def close(self) -> None:
        """Its handle goes with the object, and says nothing to the broker."""
        self._producer.purge()
        del self._producer

    def _call(self, action: Callable[[], object]) -> None:
        """What may be tried again is: a coordinator may have died in the middle."""

        def is_done() -> bool:
            try:
                action()
            except confluent_kafka.KafkaException as failure:
                error: confluent_kafka.KafkaError = failure.args[0]
                if not error.retriable():
                    raise _rdkafka_refusal(error) from failure
                return False
            return True

        wait_until(is_done, "librdkafka")


def _rdkafka_refusal(error: confluent_kafka.KafkaError) -> Refused:
    return Refused(f"{error.name()}: {error.str()}", is_fenced=error.code() in _RDKAFKA_FENCED)


class _LibrdkafkaMember:
    def __init__(self, servers: str, topic: str, group: str) -> None:
        self.group = group
        self.consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "isolation.level": COMMITTED,
            }
        )
        self.consumer.subscribe([topic])

    def take(self, count: int) -> list[Found]:
        found: list[Found] = []

        def has_all() -> bool:
            record = self.consumer.poll(POLL_S)
            if record is not None:
                assert record.error() is None, record.error()
                found.append(_rdkafka_found(record))
            return len(found) == count

        wait_until(has_all, f"{count} records")
        return found

    def close(self) -> None:
        self.consumer.close()


def _rdkafka_found(record: confluent_kafka.Message) -> Found:
    partition, offset = record.partition(), record.offset()
    assert partition is not None and offset is not None
    return Found(partition, offset, (record.value() or b"").decode())


class Librdkafka:
    """confluent-kafka."""

    name = "librdkafka"

    def producer(
        self, servers: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS
    ) -> TransactionalProducer:
        return _LibrdkafkaProducer(servers, transactional_id, timeout_ms)

    def member(self, servers: str, topic: str, group: str) -> Member:
        return _LibrdkafkaMember(servers, topic, group)

    def read(
        self,
        servers: str,
        topic: str,
        *,
        isolation: str = COMMITTED,
        partitions: int = 1,
        rack: str = "",
    ) -> list[Found]:
        """Its own end of a partition is the one for its isolation level."""
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": servers,
                **NO_GROUP,
                "isolation.level": isolation,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": FETCH_WAIT_MS,
                "client.rack": rack,
            }
        )
        wanted = [confluent_kafka.TopicPartition(topic, index, 0) for index in range(partitions)]
        consumer.assign(wanted)
        found: list[Found] = []
        ended: set[int] = set()

        def is_over() -> bool:
            for record in consumer.consume(RECORDS_PER_POLL, POLL_S):
                error = record.error()
                if error is None:
                    found.append(_rdkafka_found(record))
                elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                    ended.add(record.partition() or 0)
            return len(ended) == partitions

        wait_until(is_over, f"the end of {topic}")
        consumer.close()
        return sorted(found)
