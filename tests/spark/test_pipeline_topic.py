"""A pipeline into topics: each batch is one transaction, and an unfit cluster is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, Message, TopicPartition

import tidelog
from tests.process.waiting import wait_until
from tests.spark.brokers import Brokers
from tests.spark.orders import Orders, pipeline_file
from tests.spark.topics import NewTopic
from tidelog.spark import pipeline
from tidelog.spark.pipeline.job.events import RunEnding, RunOutcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long


def headers_of(letter: Message) -> dict[str, bytes]:
    headers: Any = letter.headers() or []
    return dict(headers)


def into_topics(file: Path, *, valid: str, dead: str) -> None:
    """The example with topics where it has tables."""
    text = file.read_text()
    text = text.replace(
        'table = "orders-data/valid_orders"',
        f'topic = "{valid}"\nid = "{valid}"\nkey = "order_id"\noptions.writers = 1',
    )
    text = text.replace('table = "orders-data/dead_letters"', f'topic = "{dead}"\nid = "{dead}"')
    begin, end = text.index("[sinks.revenue]"), text.index("[dead_letters]")
    file.write_text(text[:begin] + text[end:])


def run(file: Path, servers: str, spark: SparkSession) -> RunOutcome:
    return pipeline.run(file, bootstrap=servers, available_now=True, spark=spark)


def committed(servers: str, topic: str, *, at_least: int) -> list[Message]:
    """Everything that a reader of committed data gets, up to the end of every partition."""
    settings = {
        "bootstrap.servers": servers,
        "group.id": "reader",
        "enable.auto.commit": False,
        "isolation.level": "read_committed",
        "enable.partition.eof": True,
    }
    consumer = Consumer(settings)
    try:
        partitions = consumer.list_topics(topic, 60).topics[topic].partitions
        consumer.assign([TopicPartition(topic, each, 0) for each in partitions])
        found: list[Message] = []
        ended: set[int] = set()

        def is_read() -> bool:
            for message in consumer.consume(500, 1.0):
                error = message.error()
                if error is None:
                    found.append(message)
                else:
                    ended.add(message.partition() or 0)
            return len(ended) == len(partitions) and len(found) >= at_least

        wait_until(is_read, f"all of {topic}, at least {at_least}")
        return found
    finally:
        consumer.close()


def test_every_order_and_every_dead_letter_is_committed_once(
    spark: SparkSession, brokers: Brokers, new_topic: NewTopic, tmp_path: Path
) -> None:
    """In two runs; the driver of the first died after its commit and before Spark had noted it."""
    servers = brokers.bootstrap_servers
    orders = Orders(servers, new_topic(brokers, partitions=2))
    valid, dead = new_topic(brokers, partitions=2), new_topic(brokers)
    file = pipeline_file(tmp_path, orders.topic)
    into_topics(file, valid=valid, dead=dead)
    orders.write(range(200))
    outcome = run(file, servers, spark)
    assert outcome.ending is RunEnding.FINISHED, outcome.reason

    for sink in ("valid_orders", "dead_letters"):
        commits = tmp_path / "orders-data" / "checkpoint" / "sinks" / sink / "commits"
        latest = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
        (commits / str(latest)).unlink()
        (commits / f".{latest}.crc").unlink(missing_ok=True)
    orders.write(range(190, 300))
    outcome = run(file, servers, spark)
    assert outcome.ending is RunEnding.FINISHED, outcome.reason

    records = committed(servers, valid, at_least=len(orders.valid))
    keys = [(record.key() or b"").decode() for record in records]
    assert sorted(keys) == sorted(orders.valid)
    assert {json.loads(record.value() or b"")["order_id"] for record in records} == orders.valid
    letters = committed(servers, dead, at_least=len(orders.dead))
    positions = {
        (int(headers["tidelog.partition"]), int(headers["tidelog.offset"]), letter.value() or b"")
        for letter in letters
        for headers in [headers_of(letter)]
        if headers["tidelog.reason"] and headers["tidelog.topic"].decode() == orders.topic
    }
    assert (positions, len(letters)) == (orders.dead, len(orders.dead))


def test_an_unfit_cluster_is_told_in_one_line(
    spark: SparkSession, unfit: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    servers = unfit.bootstrap_servers
    orders = Orders(servers, new_topic(unfit, replicas=1))
    file = pipeline_file(tmp_path, orders.topic)
    into_topics(file, valid=new_topic(unfit, replicas=1), dead=new_topic(unfit, replicas=1))
    orders.write(range(10))
    outcome = run(file, servers, spark)
    assert outcome.ending is RunEnding.FAILED
    assert outcome.reason is not None
    assert outcome.reason.startswith(
        "sinks.valid_orders, dead_letters: transaction.partition.verification.enable is not true"
    )
    assert "\n" not in outcome.reason
