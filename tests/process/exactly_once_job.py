"""A job that reads, transforms and writes in transactions with librdkafka, until it is killed.

Arguments: servers, source, target, and the name of its group and of its transactional id. It says
`begun COUNT` when a transaction's records are sent and `committed COUNT` when that is done.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaException, Message, Producer, TopicPartition

RECORDS_PER_TRANSACTION = 750
WAIT_S = 0.2
PATIENCE_S = 120.0


def transformed(value: str) -> str:
    return f"{value}!"


class Job:
    """One instance; a group of one, since its transactional id is one."""

    def __init__(self, servers: str, source: str, target: str, name: str) -> None:
        self._target = target
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": name,
                "group.instance.id": name,  # the next one takes over without waiting for a session
                "isolation.level": "read_committed",
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                "log_level": 0,
            }
        )
        self._consumer.subscribe([source])
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "transactional.id": name,
                "reconnect.backoff.max.ms": 500,
                "log_level": 0,
            }
        )
        self._until_done(lambda: self._producer.init_transactions(PATIENCE_S))

    def run(self) -> None:
        while True:
            found = self._consumer.consume(RECORDS_PER_TRANSACTION, WAIT_S)
            records = [record for record in found if record.error() is None]
            if records:
                self._write(records)

    def _write(self, records: list[Message]) -> None:
        self._producer.begin_transaction()
        try:
            for record in records:
                value = transformed((record.value() or b"").decode())
                self._producer.produce(self._target, value, partition=record.partition() or 0)
                self._producer.poll(0)
            say("begun", len(records))
            offsets = self._consumer.position(self._consumer.assignment())
            metadata = self._consumer.consumer_group_metadata()
            self._until_done(
                lambda: self._producer.send_offsets_to_transaction(offsets, metadata, PATIENCE_S)
            )
            self._until_done(lambda: self._producer.commit_transaction(PATIENCE_S))
        except KafkaException as failure:
            if not failure.args[0].txn_requires_abort():
                raise
            self._until_done(lambda: self._producer.abort_transaction(PATIENCE_S))
            self._go_back(records)
            say("aborted", failure.args[0].name())
        else:
            say("committed", len(records))

    def _go_back(self, records: list[Message]) -> None:
        """To the first records of a transaction that was aborted."""
        firsts: dict[int, int] = {}
        for record in records:
            firsts.setdefault(record.partition() or 0, record.offset() or 0)
        topic = records[0].topic()
        assert topic is not None
        for partition, offset in firsts.items():
            self._consumer.seek(TopicPartition(topic, partition, offset))

    def _until_done(self, action: Callable[[], object]) -> None:
        while True:
            try:
                action()
                return
            except KafkaException as failure:
                if not failure.args[0].retriable():
                    raise


def say(what: str, detail: object) -> None:
    print(what, detail, flush=True)


if __name__ == "__main__":
    Job(*sys.argv[1:]).run()
