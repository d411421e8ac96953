"""The audit of transactions on Apache Kafka: commits, aborts, and one that is still open."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import confluent_kafka
import pytest
from pyspark.sql import SparkSession

from tests.kafka import KafkaCluster
from tests.spark.audit_writers import Writer
from tests.spark.topics import NewTopic
from tests.spark.transactions import wait_until_ended
from tidelog.client.producer.outcome import SendOk, SendTicket
from tidelog.client.shells.acks_journal import AcksJournal, OutcomeCounts
from tidelog.core.model.ids import TopicPartition
from tidelog.spark.audit.audit import audit
from tidelog.spark.audit.report import AuditReport
from tidelog.spark.audit.request import AuditRequest

pytestmark = [pytest.mark.java, pytest.mark.long]

TRANSACTIONS, RECORDS = 6, 20
ABORTED = {1, 4}
OPEN_RECORDS, PLAIN_RECORDS = 3, 7


class TransactionalWriter:
    """librdkafka's producer, with a journal that names transactions and their ends."""

    def __init__(self, servers: str, journal: Path, topic: str, name: str) -> None:
        self._topic = topic
        self._name = name
        self._file = journal.open("w", encoding="utf-8")
        self._journal = AcksJournal(self._file)
        self._journal.begin(
            run=name,
            topic=topic,
            topic_id=None,
            acks="all",
            is_idempotent=True,
            transactional_id=name,
        )
        self._counts = OutcomeCounts()
        self._sent = 0
        self.producer = confluent_kafka.Producer(
            {"bootstrap.servers": servers, "transactional.id": name, "linger.ms": 5}
        )
        self.producer.init_transactions(60)

    def write(self, transaction: str, count: int) -> None:
        """Begin it, send, and wait until everything is in the log."""
        self.producer.begin_transaction()
        for _ in range(count):
            number, value = self._sent, f"{self._name}-{self._sent}".encode()
            self._sent += 1
            partition = number % 2
            self.producer.produce(
                self._topic,
                value,
                key=b"k",
                partition=partition,
                timestamp=1_767_225_600_000 + number,
                on_delivery=partial(self._hear, number, value, transaction),
            )
        assert self.producer.flush(60) == 0

    def end(self, transaction: str, *, commit: bool) -> None:
        if commit:
            self.producer.commit_transaction(60)
        else:
            self.producer.abort_transaction(60)
        word = "committed" if commit else "aborted"
        self._journal.transaction_ended(transaction, word, answered_us=time.monotonic_ns() // 1_000)

    def close(self) -> None:
        self._journal.end(self._counts)
        self._file.close()

    def _hear(
        self,
        number: int,
        value: bytes,
        transaction: str,
        _error: confluent_kafka.KafkaError | None,
        message: confluent_kafka.Message,
    ) -> None:
        assert message.error() is None, message.error()
        partition = message.partition()
        assert partition is not None
        ticket = SendTicket(
            self._topic,
            value,
            key=b"k",
            wanted_index=None,
            headers=(),
            timestamp_ms=message.timestamp()[1],
            then=None,
        )
        ticket.partition = TopicPartition(self._topic, partition)
        ticket.complete(SendOk(message.offset()), 0)
        self._counts.add(SendOk(message.offset()))
        self._journal.write_outcome(
            number, ticket, sent_us=0, answered_us=0, transaction=transaction
        )


@pytest.fixture
def journals(kafka3: KafkaCluster, new_topic: NewTopic, tmp_path: Path) -> Iterator[list[Path]]:
    topic = new_topic(kafka3, partitions=2)
    servers = kafka3.bootstrap_servers
    paths = [tmp_path / name for name in ("decided", "open", "plain")]
    writer = TransactionalWriter(servers, paths[0], topic, f"{topic}-decided")
    for number in range(TRANSACTIONS):
        writer.write(str(number), RECORDS)
        writer.end(str(number), commit=number not in ABORTED)
    writer.close()
    wait_until_ended(servers, f"{topic}-decided")
    undecided = TransactionalWriter(servers, paths[1], topic, f"{topic}-open")
    undecided.write("never", OPEN_RECORDS)
    undecided.close()
    with Writer(servers, paths[2], topic) as plain:
        plain.send_all("plain", PLAIN_RECORDS)
    yield paths
    undecided.producer.abort_transaction(60)


def judge(spark: SparkSession, kafka3: KafkaCluster, journals: list[Path]) -> AuditReport:
    settings = {"bootstrap.servers": kafka3.bootstrap_servers}
    return audit(spark, AuditRequest(journals=tuple(journals), settings=settings, is_strict=True))


def test_commits_are_kept_aborts_are_not_and_nothing_is_invented(
    spark: SparkSession, kafka3: KafkaCluster, journals: list[Path]
) -> None:
    report = judge(spark, kafka3, journals)
    assert report.findings == {}, report.first
    assert report.counts == {
        ("kept", "all"): (TRANSACTIONS - len(ABORTED)) * RECORDS + PLAIN_RECORDS,
        ("aborted", "all"): len(ABORTED) * RECORDS,
        ("open", "all"): OPEN_RECORDS,
    }


def test_a_producer_that_was_told_the_opposite(
    spark: SparkSession, kafka3: KafkaCluster, journals: list[Path]
) -> None:
    """Told of a commit that the log aborts: lost. Told of an abort that it commits: read."""
    swapped = {"1": "committed", "2": "aborted"}
    lines = []
    for line in journals[0].read_text().splitlines():
        entry = json.loads(line)
        if entry.get("transaction") in swapped and "number" not in entry:
            entry["outcome"] = swapped[entry["transaction"]]
        lines.append(json.dumps(entry))
    journals[0].write_text("\n".join(lines) + "\n")
    report = judge(spark, kafka3, journals)
    assert report.findings == {"lost": RECORDS, "aborted but read": RECORDS}
    assert {each["number"] // RECORDS for each in report.first} == {2}, "by name, then by place"
