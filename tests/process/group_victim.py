"""A consumer of a group in a process of its own, so that it can be killed: says what it has done.

    python -m tests.process.group_victim CLIENT PLAN ADDRESS TOPIC GROUP

Plans, over a topic of 200 records:

- `manual` commits after 100, processes 51 more and waits for its end;
- `poll` has automatic commits and processes inside of its poll loop: 100, then 100 more;
- `unfinished` has automatic commits and never finishes the record behind the first 100;
- `stored` is the same, but the program itself says which offsets may be committed.
"""

from __future__ import annotations

import signal
import sys
import threading

import confluent_kafka
import kafka

SESSION_MS = 6_000
HEARTBEAT_MS = 1_000
COMMIT_MS = 1_000
POLL_S = 0.2


def main(client: str, plan: str, address: str, topic: str, group: str) -> None:
    if client == "librdkafka":
        with_librdkafka(plan, address, topic, group)
    else:
        with_kafka_python(plan, address, topic, group)
    print("ready", flush=True)
    signal.pause()


def with_librdkafka(plan: str, address: str, topic: str, group: str) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "enable.auto.commit": plan != "manual",
            "enable.auto.offset.store": plan == "unfinished",
            "auto.commit.interval.ms": COMMIT_MS,
        }
    )
    consumer.subscribe([topic])
    KEPT.append(consumer)
    take(consumer, 100, stores=plan == "stored")
    if plan == "manual":
        consumer.commit(offsets=[confluent_kafka.TopicPartition(topic, 0, 100)], asynchronous=False)
        take(consumer, 51, stores=False)
    else:
        take(consumer, 1, stores=False)  # handed over, and never finished


def take(consumer: confluent_kafka.Consumer, count: int, *, stores: bool) -> None:
    while count:
        record = consumer.poll(POLL_S)
        if record is not None and record.error() is None:
            count -= 1
            if stores:
                consumer.store_offsets(message=record)


def with_kafka_python(plan: str, address: str, topic: str, group: str) -> None:
    consumer = kafka.KafkaConsumer(
        topic,
        bootstrap_servers=address,
        group_id=group,
        auto_offset_reset="earliest",
        session_timeout_ms=SESSION_MS,
        heartbeat_interval_ms=HEARTBEAT_MS,
        enable_auto_commit=plan != "manual",
        auto_commit_interval_ms=COMMIT_MS,
        metadata_max_age_ms=1_000,  # it may join before it knows the topic, and then has nothing
    )
    KEPT.append(consumer)
    poll(consumer, 100)
    if plan == "manual":
        consumer.commit()
        poll(consumer, 51)
    else:
        threading.Event().wait(2 * COMMIT_MS / 1_000)  # the next poll commits what this one gave
        poll(consumer, 100)


def poll(consumer: kafka.KafkaConsumer, count: int) -> None:
    while count:
        batches = consumer.poll(timeout_ms=int(1_000 * POLL_S), max_records=count)
        count -= sum(map(len, batches.values()))


KEPT: list[object] = []
"""A consumer that is forgotten would leave its group."""

if __name__ == "__main__":
    main(*sys.argv[1:])
