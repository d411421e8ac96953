"""kafka-python and aiokafka in transactions, with the face of `transactional_clients.py`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import aiokafka
import aiokafka.errors
import kafka
import kafka.errors
import kafka.structs

from tests.process.transactional_clients import (
    COMMITTED,
    FETCH_WAIT_MS,
    TIMEOUT_MS,
    Found,
    Librdkafka,
    Member,
    Refused,
    TransactionalClient,
    TransactionalProducer,
)
from tests.process.waiting import PATIENCE_MS, PATIENCE_S, wait_until


@contextmanager
def _refusals(kinds: tuple[type[Exception], ...], fenced: Sequence[str]) -> Iterator[None]:
    """Of libraries whose exceptions have telling names."""
    try:
        yield
    except kinds as error:
        names = [type(each).__name__ for each in _chain(error)]
        is_fenced = any(name in fenced for name in names)
        raise Refused(" < ".join(names), is_fenced=is_fenced) from error


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


# kafka-python


_KAFKA_PYTHON_FENCED = ("ProducerFencedError", "InvalidProducerEpochError")


class _KafkaPythonProducer:
    def __init__(self, servers: str, transactional_id: str, timeout_ms: int) -> None:
        self._producer = kafka.KafkaProducer(
            bootstrap_servers=servers.split(","),
            transactional_id=transactional_id,
            transaction_timeout_ms=timeout_ms,
            max_block_ms=PATIENCE_MS,
            metadata_max_age_ms=1_000,
        )

    def init(self) -> None:
        with self._refusals():
            self._producer.init_transactions()

    def begin(self) -> None:
        with self._refusals():
            self._producer.begin_transaction()

    def send(self, topic: str, value: str, *, partition: int = 0) -> None:
        with self._refusals():
            sent = self._producer.send(topic, value.encode(), partition=partition)
            sent.get(PATIENCE_S)

    def send_offsets(self, topic: str, next_offsets: Mapping[int, int], of: Member) -> None:
        assert isinstance(of, _KafkaPythonMember)
        offsets = {
            kafka.TopicPartition(topic, index): kafka.structs.OffsetAndMetadata(offset, "", -1)
            for index, offset in next_offsets.items()
        }
        with self._refusals():
            self._producer.send_offsets_to_transaction(offsets, of.consumer.group_metadata())

    def commit(self) -> None:
        with self._refusals():
            self._producer.commit_transaction()

    def abort(self) -> None:
        with self._refusals():
            self._producer.abort_transaction()

    def close(self) -> None:
        self._producer.close(timeout=0)

    def _refusals(self) -> Any:
        return _refusals((kafka.errors.KafkaError,), _KAFKA_PYTHON_FENCED)


class _KafkaPythonMember:
    def __init__(self, servers: str, topic: str, group: str) -> None:
        self.group = group
        self.consumer = kafka.KafkaConsumer(
            bootstrap_servers=servers.split(","),
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            isolation_level=COMMITTED,
        )
        # If it joins before it knows the topic it assigns nothing, and may leave it at that.
        wait_until(lambda: self.consumer.partitions_for_topic(topic), f"{topic} to be known")
        self.consumer.subscribe([topic])

    def take(self, count: int) -> list[Found]:
        found: list[Found] = []

        def has_all() -> bool:
            batches = self.consumer.poll(timeout_ms=100, max_records=count - len(found))
            found.extend(_found(record) for batch in batches.values() for record in batch)
            return len(found) == count

        wait_until(has_all, f"{count} records")
        return found

    def close(self) -> None:
        self.consumer.close()


def _found(record: Any) -> Found:
    """kafka-python's and aiokafka's records have the same fields."""
    return Found(record.partition, record.offset, (record.value or b"").decode())


class KafkaPython:
    """kafka-python."""

    name = "kafka-python"

    def producer(
        self, servers: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS
    ) -> TransactionalProducer:
        return _KafkaPythonProducer(servers, transactional_id, timeout_ms)

    def member(self, servers: str, topic: str, group: str) -> Member:
        return _KafkaPythonMember(servers, topic, group)

    def read(
        self,
        servers: str,
        topic: str,
        *,
        isolation: str = COMMITTED,
        partitions: int = 1,
        rack: str = "",
    ) -> list[Found]:
        consumer = kafka.KafkaConsumer(
            bootstrap_servers=servers.split(","),
            group_id=None,
            auto_offset_reset="earliest",
            isolation_level=isolation,
            client_rack=rack,
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )
        wanted = [kafka.TopicPartition(topic, index) for index in range(partitions)]
        consumer.assign(wanted)
        ends = consumer.end_offsets(wanted)
        consumer.seek_to_beginning()
        found: list[Found] = []

        def is_over() -> bool:
            for batch in consumer.poll(timeout_ms=100).values():
                found.extend(map(_found, batch))
            return all(consumer.position(each) >= ends[each] for each in wanted)

        wait_until(is_over, f"the end of {topic}")
        consumer.close()
        return sorted(found)


# aiokafka


_AIOKAFKA_FENCED = ("ProducerFenced", "InvalidProducerEpoch")


class _Loop:
    """An event loop in a thread of its own, because clients send heartbeats while tests wait."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    def run(self, action: Coroutine[Any, Any, Any]) -> Any:
        with _refusals((aiokafka.errors.KafkaError, TimeoutError), _AIOKAFKA_FENCED):
            limited = asyncio.wait_for(action, PATIENCE_S)
            return asyncio.run_coroutine_threadsafe(limited, self._loop).result()

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)


class _AiokafkaProducer:
    def __init__(self, servers: str, transactional_id: str, timeout_ms: int) -> None:
        self._loop = _Loop()

        async def make() -> Any:
            return aiokafka.AIOKafkaProducer(
                bootstrap_servers=servers.split(","),
                transactional_id=transactional_id,
                transaction_timeout_ms=timeout_ms,
                metadata_max_age_ms=1_000,
            )

        self._producer = self._loop.run(make())

    def init(self) -> None:
        self._loop.run(self._producer.start())

    def begin(self) -> None:
        self._loop.run(self._producer.begin_transaction())

    def send(self, topic: str, value: str, *, partition: int = 0) -> None:
        sent = self._producer.send_and_wait(topic, value.encode(), partition=partition)
        self._loop.run(sent)

    def send_offsets(self, topic: str, next_offsets: Mapping[int, int], of: Member) -> None:
        """It names the group only, not its member."""
        offsets = {
            aiokafka.TopicPartition(topic, index): offset for index, offset in next_offsets.items()
        }
        self._loop.run(self._producer.send_offsets_to_transaction(offsets, of.group))

    def commit(self) -> None:
        self._loop.run(self._producer.commit_transaction())

    def abort(self) -> None:
        self._loop.run(self._producer.abort_transaction())

    def close(self) -> None:
        """Its `stop` would abort what is open: only its connections are closed."""
        sender, client = self._producer._sender, self._producer.client

        async def vanish() -> None:
            await sender.close()
            await client.close()
            self._producer._closed = True

        self._loop.run(vanish())
        self._loop.end()


class _AiokafkaMember:
    def __init__(self, servers: str, topic: str, group: str) -> None:
        self.group = group
        self._loop = _Loop()

        async def make() -> Any:
            consumer = aiokafka.AIOKafkaConsumer(
                topic,
                bootstrap_servers=servers.split(","),
                group_id=group,
                auto_offset_reset="earliest",
                enable_auto_commit=False,
                isolation_level=COMMITTED,
            )
            await consumer.start()
            return consumer

        self._consumer = self._loop.run(make())

    def take(self, count: int) -> list[Found]:
        return [_found(self._loop.run(self._consumer.getone())) for _ in range(count)]

    def close(self) -> None:
        self._loop.run(self._consumer.stop())
        self._loop.end()


class Aiokafka:
    """aiokafka."""

    name = "aiokafka"

    def producer(
        self, servers: str, transactional_id: str, *, timeout_ms: int = TIMEOUT_MS
    ) -> TransactionalProducer:
        return _AiokafkaProducer(servers, transactional_id, timeout_ms)

    def member(self, servers: str, topic: str, group: str) -> Member:
        return _AiokafkaMember(servers, topic, group)

    def read(
        self,
        servers: str,
        topic: str,
        *,
        isolation: str = COMMITTED,
        partitions: int = 1,
        rack: str = "",
    ) -> list[Found]:
        return asyncio.run(self._read(servers, topic, isolation, partitions, rack))

    async def _read(
        self, servers: str, topic: str, isolation: str, partitions: int, rack: str
    ) -> list[Found]:
        consumer = aiokafka.AIOKafkaConsumer(
            bootstrap_servers=servers.split(","),
            group_id=None,
            enable_auto_commit=False,
            isolation_level=isolation,
            client_rack=rack or None,
            fetch_max_wait_ms=FETCH_WAIT_MS,
        )
        wanted = [aiokafka.TopicPartition(topic, index) for index in range(partitions)]
        consumer.assign(wanted)
        found: list[Found] = []
        async with consumer:
            ends = await consumer.end_offsets(wanted)
            for each in wanted:
                consumer.seek(each, 0)
            for _ in range(PATIENCE_MS // 100):
                batches = await consumer.getmany(timeout_ms=100)
                found += [_found(record) for batch in batches.values() for record in batch]
                positions = [await consumer.position(each) for each in wanted]
                if all(at >= ends[each] for at, each in zip(positions, wanted, strict=True)):
                    return sorted(found)
        raise AssertionError(f"no end of {topic}")


PYTHON_CLIENTS: tuple[TransactionalClient, ...] = (Librdkafka(), KafkaPython(), Aiokafka())
