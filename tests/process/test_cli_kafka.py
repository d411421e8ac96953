"""The verbs over the Kafka protocol on Apache Kafka itself, one after the other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from confluent_kafka import Consumer

from tests.kafka import KafkaBroker
from tests.process.client_verbs import CommandLine, next_line
from tests.process.waiting import wait_until

WITHIN_S = 60.0


@pytest.mark.java
@pytest.mark.long
def test_every_verb_works_on_apache_kafka(tmp_path: Path) -> None:
    with KafkaBroker(settings={"broker.rack": "a"}) as kafka:
        tidelog = CommandLine(kafka.address)
        _topics(tidelog)
        _records(tidelog, tmp_path)
        _groups(tidelog)
        _new_groups(tidelog, kafka.address)
        _own_new_member(tidelog)
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


def _groups(tidelog: CommandLine) -> None:
    """A classic group, from its first member to its end."""
    read = tidelog.ok("consume", "orders", "--group", "mail", "--exit")
    assert sorted(read.output.splitlines()) == ["one", "three", "two"]
    assert tidelog.ok("consume", "orders", "--group", "mail", "--exit").output == ""
    listed = tidelog.ok("group", "list", "--state", "Empty", "--type", "classic", "--json").document
    assert [each["group"] for each in listed["groups"]] == ["mail"]
    [group] = tidelog.ok("group", "describe", "mail", "--json").document["groups"]
    assert (group["state"], group["lag"], group["members"]) == ("Empty", 0, [])

    reset = ("group", "reset", "mail", "--topic", "orders", "--to-earliest", "--json")
    plan = tidelog.ok(*reset).document
    assert plan["executed"] is False and {each["new_offset"] for each in plan["partitions"]} == {0}
    assert tidelog.ok("consume", "orders", "--group", "mail", "--exit").output == ""
    tidelog.ok(*reset, "--execute")
    member = tidelog.start("consume", "orders", "--group", "mail")
    try:
        assert next_line(member)
        refused = tidelog(*reset)
        assert refused.code == 1 and "NON_EMPTY_GROUP: group mail is Stable" in refused.errors
        refused = tidelog("group", "delete", "mail")
        assert refused.code == 1 and "NON_EMPTY_GROUP: group mail has members" in refused.errors
        [group] = tidelog.ok("group", "describe", "mail", "--json").document["groups"]
        [found] = group["members"]
        assert found["client_id"] == "tidelog-consume" and len(found["partitions"]) == 3
        assert group["assignor"] == "range"
    finally:
        member.terminate()
        member.communicate(timeout=WITHIN_S)
    assert tidelog.ok("group", "delete", "mail").output == "deleted group mail\n"
    missing = tidelog("group", "describe", "mail")
    assert missing.code == 1 and "GROUP_ID_NOT_FOUND: group mail does not exist" in missing.errors


def _own_new_member(tidelog: CommandLine) -> None:
    """Our KIP-848 member reads, commits and leaves; the next one goes on from there."""
    read = ("consume", "orders", "--group", "renewed", "--group-protocol", "consumer", "--exit")
    assert sorted(tidelog.ok(*read).output.splitlines()) == ["one", "three", "two"]
    assert tidelog.ok(*read).output == ""
    listed = tidelog.ok("group", "list", "--type", "consumer", "--json").document["groups"]
    assert [each["state"] for each in listed if each["group"] == "renewed"] == ["Empty"]
    [group] = tidelog.ok("group", "describe", "renewed", "--json").document["groups"]
    assert group["lag"] == 0
    tidelog.ok("group", "delete", "renewed")


def _new_groups(tidelog: CommandLine, address: str) -> None:
    """A group of the new protocol: listed, with its offsets and lag; its members are not shown."""
    consumer = Consumer(
        {
            "bootstrap.servers": address,
            "group.id": "new",
            "group.protocol": "consumer",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.subscribe(["orders"])
        read: list[object] = []

        def has_all() -> bool:
            read.extend(consumer.consume(10, 0.5))
            return len(read) == 3

        wait_until(has_all, "the records", within_s=WITHIN_S)
        consumer.commit(asynchronous=False)
        [listed] = tidelog.ok("group", "list", "--type", "consumer", "--json").document["groups"]
        assert (listed["group"], listed["state"]) == ("new", "Stable")
        [group] = tidelog.ok("group", "describe", "new", "--json").document["groups"]
        assert (group["state"], group["lag"], group["members"]) == ("Stable", 0, None)
        reset = ("group", "reset", "new", "--all-topics", "--to-earliest", "--execute")
        refused = tidelog(*reset)
        assert refused.code == 1 and "NON_EMPTY_GROUP: group new is Stable" in refused.errors
    finally:
        consumer.close()
    tidelog.ok(*reset)
    [group] = tidelog.ok("group", "describe", "new", "--json").document["groups"]
    assert (group["state"], group["lag"]) == ("Empty", 3)
    tidelog.ok("group", "delete", "new")


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
