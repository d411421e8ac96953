"""The verbs over the Kafka protocol on Apache Kafka itself, one after the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.kafka import KafkaBroker
from tests.process.client_verbs import CommandLine
from tests.process.waiting import wait_until

WITHIN_S = 60.0


@pytest.mark.java
@pytest.mark.long
def test_every_verb_works_on_apache_kafka(tmp_path: Path) -> None:
    with KafkaBroker(settings={"broker.rack": "a"}) as kafka:
        tidelog = CommandLine(kafka.address)
        _topics(tidelog)
        _records(tidelog, tmp_path)
        _elections_and_quorum(tidelog)
        _refusals(tidelog)
        _end(tidelog)


def _topics(tidelog: CommandLine) -> None:
    made = tidelog.ok(
        *("topic", "create", "orders", "--partitions", "2", "--replication-factor", "1"),
        *("--config", "retention.ms=-1", "--json"),
    ).document
    assert (made["partitions"], made["replication_factor"], made["created"]) == (2, 1, True)
    again = tidelog.ok("topic", "create", "orders", "--if-not-exists", "--json").document
    assert again["created"] is False
    tidelog.ok("topic", "create", "placed", "--replica-assignment", "1,1,1")

    def listed() -> list[tuple[str, int]]:
        """What is committed reaches the broker a moment later."""
        topics = tidelog.ok("topic", "list", "--json").document["topics"]
        return [(each["topic"], each["partitions"]) for each in topics]

    both = [("orders", 2), ("placed", 3)]
    wait_until(lambda: listed() == both, "the broker to know", within_s=WITHIN_S)
    tidelog.ok("topic", "alter", "orders", "--partitions", "3", "--config", "segment.ms=60000")
    tidelog.ok("topic", "alter", "orders", "--delete-config", "segment.ms")
    grown = [("orders", 3), ("placed", 3)]
    wait_until(lambda: listed() == grown, "the broker to know", within_s=WITHIN_S)


def _records(tidelog: CommandLine, directory: Path) -> None:
    journal = directory / "acks.jsonl"
    tidelog.ok(
        *("produce", "orders", "--key-separator", ":", "--header", "a=b", "--compression", "lz4"),
        *("--journal", str(journal)),
        stdin="k1:one\nk2:two\nk1:three\n",
    )
    lines = [json.loads(line) for line in journal.read_text().splitlines()[1:-1]]
    assert [each["outcome"] for each in lines] == ["ok"] * 3
    tidelog.ok("produce", "placed", "--partition", "1", "--acks", "1", "--count", "1000")

    records = tidelog.ok("consume", "orders", "--exit", "--json").lines
    assert {(each["key"], each["value"]) for each in records} == {
        ("k1", "one"),
        ("k2", "two"),
        ("k1", "three"),
    }
    assert all(each["headers"] == [["a", "b"]] for each in records)
    assert {(each["partition"], each["offset"]) for each in records} == {
        (each["partition"], each["offset"]) for each in lines
    }
    last = tidelog.ok("consume", "placed", "--partition", "1", "--offset", "-2", "--exit")
    assert len(last.output.splitlines()) == 2
    since = tidelog.ok("consume", "placed", "--from-time", "0", "--max-messages", "7")
    assert len(since.output.splitlines()) == 7

    document = tidelog.ok("topic", "describe", "--offsets", "--json").document
    assert document["racks"] == {"1": "a"}
    orders, placed = document["topics"]
    assert orders["configs"] == {"retention.ms": "-1"} and len(orders["partitions"]) == 3
    written = placed["partitions"][1]
    assert (written["high_watermark"], written["log_end_offsets"]) == (1_000, {"1": 1_000})
    assert (written["leader"], written["isr"], written["elr"]) == (1, [1], [])
    assert "no such partitions" in tidelog.ok("topic", "describe", "--under-replicated").output


def _elections_and_quorum(tidelog: CommandLine) -> None:
    said = tidelog.ok("elect", "preferred", "orders-0", "--json").lines
    assert [each["error"] for each in said] == ["ELECTION_NOT_NEEDED"]
    assert tidelog.ok("elect", "unclean", "--all-topics").output == "no election needed\n"
    document = tidelog.ok("quorum", "describe", "--json").document
    assert document["leader"] == 1 and document["high_watermark"] > 0
    assert [each["status"] for each in document["nodes"]] == ["leader"]


def _refusals(tidelog: CommandLine) -> None:
    for line, complaint in (
        ("topic create orders", "TOPIC_ALREADY_EXISTS: "),
        ("topic create new --config no.such=1", "INVALID_CONFIG: "),
        ("topic create new --replication-factor 2", "INVALID_REPLICATION_FACTOR: "),
        ("topic alter orders --partitions 1", "INVALID_PARTITIONS: "),
        ("topic describe nowhere", "UNKNOWN_TOPIC_OR_PARTITION: topic nowhere does not exist"),
        ("produce nowhere --count 1", "UNKNOWN_TOPIC_OR_PARTITION: topic nowhere does not exist"),
        (
            "consume orders --partition 9",
            "UNKNOWN_TOPIC_OR_PARTITION: orders has partitions 0 to 2",
        ),
        ("elect preferred nowhere-0", "nowhere-0: UNKNOWN_TOPIC_OR_PARTITION: "),
    ):
        refused = tidelog(*line.split())
        assert refused.code == 1, line
        assert complaint in refused.errors, refused.errors
        assert len(refused.errors.splitlines()) == 1


def _end(tidelog: CommandLine) -> None:
    assert tidelog.ok("topic", "delete", "orders", "placed").output.count("deleted") == 2
    gone = tidelog("topic", "delete", "orders")
    assert gone.code == 1 and "UNKNOWN_TOPIC_OR_PARTITION" in gone.errors
    assert tidelog.ok("topic", "delete", "orders", "--if-exists").code == 0
