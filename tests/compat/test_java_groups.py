"""Kafka's own tools for groups: every verb, on groups of both protocols."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import confluent_kafka
import pytest

from tests.compat.clients import DELIVERY_S
from tests.kafka import Tool, ToolResult, run_tool
from tests.process.target import running_target
from tests.process.waiting import PATIENCE_MS
from tests.process.wire import WireClient, batch_of

pytestmark = pytest.mark.java

PARTITIONS, RECORDS = 3, 10
FIRST_MS = 1_600_000_000_000
FIVE_LATER = "2020-09-13T12:26:40.005Z"
"""Five milliseconds after the first record; each record is a millisecond after the one before."""
SETTINGS = {
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.heartbeat.interval.ms": 200,
    "group.consumer.min.heartbeat.interval.ms": 200,
}
BOTH = pytest.mark.parametrize("protocol", ["classic", "consumer"])
Rows = list[list[str]]


class GroupTools:
    """The tools, always on the same broker."""

    def __init__(self, address: str) -> None:
        self.address = address

    def run(self, tool: Tool, *arguments: str) -> ToolResult:
        return run_tool(tool, ["--bootstrap-server", self.address, *arguments])

    def groups(self, *arguments: str, tool: Tool = Tool.CONSUMER_GROUPS) -> str:
        """What it printed; it must have found nothing wrong."""
        result = self.run(tool, *arguments)
        said = result.output + result.errors
        assert result.exit_code == 0 and "Error" not in said, said
        return result.output

    def table(self, *arguments: str, tool: Tool = Tool.CONSUMER_GROUPS) -> Rows:
        """The rows without their headings, in order."""
        lines = self.groups(*arguments, tool=tool).splitlines()
        return sorted(line.split() for line in lines if line and not line.startswith("GROUP "))


@pytest.fixture(scope="module", name="tools")
def the_tools() -> Iterator[GroupTools]:
    with running_target(SETTINGS) as target:
        yield GroupTools(target.address)


@pytest.fixture(name="topic")
def a_filled_topic(tools: GroupTools, request: pytest.FixtureRequest) -> str:
    name = re.sub(r"[^a-zA-Z0-9]+", "-", request.node.name).strip("-")
    with WireClient(tools.address) as wire:
        wire.create_topic(name, partitions=PARTITIONS)
        for partition in range(PARTITIONS):
            values = [b"%d/%d" % (partition, n) for n in range(RECORDS)]
            batch = batch_of(*values, timestamp_ms=FIRST_MS)
            assert wire.produce(name, batch, partition=partition).error_code == 0
    return name


def consumer_of(address: str, group: str, **others: str) -> confluent_kafka.Consumer:
    return confluent_kafka.Consumer(
        {
            "bootstrap.servers": address,
            "group.id": group,
            "client.id": "a-reader",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{key.replace("_", "."): value for key, value in others.items()},
        }
    )


@contextmanager
def member(address: str, topic: str, protocol: str) -> Iterator[confluent_kafka.Consumer]:
    """One that owns all partitions, in a group of the topic's name."""
    consumer = consumer_of(address, topic, group_protocol=protocol)
    consumer.subscribe([topic])
    for _ in range(DELIVERY_S * 10):
        consumer.poll(0.1)
        if len(consumer.assignment()) == PARTITIONS:
            break
    try:
        yield consumer
    finally:
        consumer.close()


def commit(consumer: confluent_kafka.Consumer, topic: str, offsets: Sequence[int]) -> None:
    wanted = [confluent_kafka.TopicPartition(topic, n, each) for n, each in enumerate(offsets)]
    consumer.commit(offsets=wanted, asynchronous=False)


def committed(address: str, topic: str) -> list[int | None]:
    """As a consumer of the group finds them; None where there is none."""
    consumer = consumer_of(address, topic)
    wanted = [confluent_kafka.TopicPartition(topic, n) for n in range(PARTITIONS)]
    found = consumer.committed(wanted, timeout=DELIVERY_S)
    consumer.close()
    none = confluent_kafka.OFFSET_INVALID
    return [None if each.offset == none else each.offset for each in found]


@BOTH
def test_a_group_at_work_is_listed_and_described(
    tools: GroupTools, topic: str, protocol: str
) -> None:
    other = {"classic": "consumer", "consumer": "classic"}[protocol]
    group = ("--describe", "--group", topic)
    with member(tools.address, topic, protocol) as consumer:
        commit(consumer, topic, [4, 0, 10])
        member_id = consumer.memberid()
        assert member_id is not None

        assert [topic] in tools.table("--list")
        assert [topic, "Stable"] in tools.table("--list", "--state")
        assert [topic, "Stable"] in tools.table("--list", "--state", "stable,empty")
        assert topic not in tools.groups("--list", "--state", "empty")
        assert [topic, protocol.capitalize()] in tools.table("--list", "--type")
        assert [topic, protocol.capitalize()] in tools.table("--list", "--type", protocol)
        assert topic not in tools.groups("--list", "--type", other)

        owner = [member_id, "/127.0.0.1", "a-reader"]
        offsets = [
            [topic, topic, str(index), str(done), "10", str(10 - done), *owner]
            for index, done in enumerate([4, 0, 10])
        ]
        assert tools.table(*group, "--offsets") == offsets
        assert tools.table(*group) == offsets
        assert [row[:3] for row in tools.table(*group, "--offsets", "--verbose")] == [
            row[:3] for row in offsets
        ]
        everything = tools.table("--describe", "--all-groups")
        assert [row for row in everything if row[0] == topic] == offsets

        mine = [topic, *owner, str(PARTITIONS)]
        assert tools.table(*group, "--members") == [mine]
        [verbose] = tools.table(*group, "--members", "--verbose")
        assert verbose[:5] == mine and f"{topic}:0,1,2" in verbose

        [state] = tools.table(*group, "--state")
        strategy = {"classic": "range", "consumer": "uniform"}[protocol]
        assert (state[1], state[-3:]) == (tools.address, [strategy, "Stable", "1"])
        [verbose] = tools.table(*group, "--state", "--verbose")
        assert verbose[:4] == state[:4] and verbose[-1] == "1"

    [state] = tools.table(*group, "--state")
    assert state[-2:] == ["Empty", "0"]
    assert tools.table(*group, "--members") == []
    assert [row[-3:] for row in tools.table(*group)] == [["-"] * 3] * PARTITIONS


RESETS = {
    "to-earliest": (["--to-earliest"], [0, 0, 0]),
    "to-latest": (["--to-latest"], [10, 10, 10]),
    "to-offset": (["--to-offset", "6"], [6, 6, 6]),
    "beyond the end": (["--to-offset", "600"], [10, 10, 10]),
    "shift-by": (["--shift-by", "3"], [7, 4, 10]),
    "shift back": (["--shift-by", "-3"], [1, 0, 6]),
    "to-current": (["--to-current"], [4, 1, 9]),
    "to-datetime": (["--to-datetime", FIVE_LATER], [5, 5, 5]),
    "by-duration": (["--by-duration", "P1D"], [10, 10, 10]),
    "by a long duration": (["--by-duration", "P20000D"], [0, 0, 0]),
}


def planned(rows: Rows, group: str) -> Rows:
    """Topic, partition and new offset of each line of a reset; warnings stand between them."""
    return sorted(row[1:] for row in rows if row[0] == group)


@BOTH
def test_offsets_are_reset_to_every_kind_of_target(
    tools: GroupTools, topic: str, protocol: str
) -> None:
    """First only shown, then done; a group with a member is left alone."""
    reset = ("--group", topic, "--reset-offsets", "--topic", topic)
    with member(tools.address, topic, protocol) as consumer:
        commit(consumer, topic, [4, 1, 9])
        refused = tools.run(Tool.CONSUMER_GROUPS, *reset, "--to-earliest", "--execute")
        assert "inactive, but the current state is Stable" in refused.output, refused
        assert committed(tools.address, topic) == [4, 1, 9]

    simple = consumer_of(tools.address, topic)
    for name, (target, wanted) in RESETS.items():
        expected = [[topic, str(index), str(each)] for index, each in enumerate(wanted)]
        assert planned(tools.table(*reset, *target, "--dry-run"), topic) == expected, name
        assert committed(tools.address, topic) == [4, 1, 9], name
        assert planned(tools.table(*reset, *target, "--execute"), topic) == expected, name
        assert committed(tools.address, topic) == wanted, name
        commit(simple, topic, [4, 1, 9])
    simple.close()


def test_resets_take_some_partitions_all_topics_or_a_file(
    tools: GroupTools, topic: str, tmp_path: Path
) -> None:
    with member(tools.address, topic, "classic") as consumer:
        commit(consumer, topic, [4, 1, 9])
    reset = ("--group", topic, "--reset-offsets")
    tools.groups(*reset, "--topic", f"{topic}:0,2", "--to-earliest", "--execute")
    assert committed(tools.address, topic) == [0, 1, 0]

    everything = (*reset, "--all-topics", "--shift-by", "2")
    exported = tools.groups(*everything, "--dry-run", "--export")
    lines = sorted(line for line in exported.splitlines() if line)
    assert lines == [f'"{topic}",0,2', f'"{topic}",1,3', f'"{topic}",2,2']
    assert committed(tools.address, topic) == [0, 1, 0]

    file = tmp_path / "offsets.csv"
    file.write_text(exported)
    tools.groups(*reset, "--from-file", str(file), "--execute")
    assert committed(tools.address, topic) == [2, 3, 2]


@BOTH
def test_offsets_and_groups_are_deleted_once_nobody_uses_them(
    tools: GroupTools, topic: str, protocol: str
) -> None:
    delete_offsets = ("--delete-offsets", "--group", topic, "--topic", f"{topic}:1")
    delete = ("--delete", "--group", topic)
    with member(tools.address, topic, protocol) as consumer:
        commit(consumer, topic, [4, 1, 9])
        refused = tools.run(Tool.CONSUMER_GROUPS, *delete_offsets)
        assert "GroupSubscribedToTopicException" in refused.output + refused.errors, refused
        refused = tools.run(Tool.CONSUMER_GROUPS, *delete)
        assert "GroupNotEmptyException" in refused.output + refused.errors, refused
        assert committed(tools.address, topic) == [4, 1, 9]

    shown = tools.groups(*delete_offsets)
    assert re.search(rf"{topic}\s+1\s+Successful", shown), shown
    assert committed(tools.address, topic) == [4, None, 9]
    assert f"('{topic}') was successful" in tools.groups(*delete)
    assert [topic] not in tools.table("--list")
    assert committed(tools.address, topic) == [None] * PARTITIONS
    for verb in ("--describe", "--delete"):
        unknown = tools.run(Tool.CONSUMER_GROUPS, verb, "--group", topic)
        assert "GroupIdNotFoundException" in unknown.output + unknown.errors, unknown


def test_kafka_groups_lists_all_kinds_by_type_and_protocol(tools: GroupTools, topic: str) -> None:
    """One of each protocol, one that only keeps offsets, and workers that are no consumers."""
    names = {kind: f"{topic}-{kind}" for kind in ("classic", "consumer", "simple", "connect")}
    for kind in ("classic", "consumer"):
        consumer = consumer_of(tools.address, names[kind], group_protocol=kind)
        consumer.subscribe([topic])
        assert consumer.poll(DELIVERY_S) is not None
        consumer.commit(asynchronous=False)
        consumer.close()
    simple = consumer_of(tools.address, names["simple"])
    commit(simple, topic, [1, 2, 3])
    simple.close()

    def listed(*filters: str) -> Rows:
        rows = tools.table("--list", *filters, tool=Tool.GROUPS)
        return [row for row in rows if row[0].startswith(topic)]

    classic = [names["classic"], "Classic", "consumer"]
    modern = [names["consumer"], "Consumer", "consumer"]
    offsets = [names["simple"], "Classic"]
    workers = [names["connect"], "Classic", "connect"]
    with worker_in(tools.address, names["connect"]):
        assert listed() == sorted([classic, modern, offsets, workers])
        assert listed("--group-type", "classic") == sorted([classic, offsets, workers])
        assert listed("--group-type", "consumer") == [modern]
        assert listed("--protocol", "connect") == [workers]
        assert listed("--protocol", "consumer") == [classic, modern]
        both = ("--group-type", "classic", "--protocol", "consumer")
        assert listed(*both) == [classic]
        assert listed("--consumer") == sorted([classic, modern, offsets])
        assert listed("--share") == listed("--streams") == []


@contextmanager
def worker_in(address: str, group: str) -> Iterator[None]:
    """A member as Kafka Connect makes them: another protocol type, an assignment of its own."""
    with WireClient(address) as wire:
        joined = {
            "group_id": group,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 30_000,
            "protocol_type": "connect",
            "protocols": [{"name": "default", "metadata": b"\0"}],
        }
        first = wire.ask("JoinGroup", 9, member_id="", **joined)
        second = wire.ask("JoinGroup", 9, member_id=first.member_id, **joined)
        assert second.error_code == 0, second
        yield


@BOTH
def test_the_console_consumer_goes_on_where_its_group_has_committed(
    tools: GroupTools, topic: str, protocol: str
) -> None:
    values: list[str] = []
    for count in (7, PARTITIONS * RECORDS - 7):
        values += tools.groups(
            *("--topic", topic, "--group", topic, "--from-beginning"),
            *("--max-messages", str(count), "--timeout-ms", str(PATIENCE_MS)),
            *("--command-property", f"group.protocol={protocol}"),
            tool=Tool.CONSOLE_CONSUMER,
        ).split()

    wanted = [f"{index}/{n}" for index in range(PARTITIONS) for n in range(RECORDS)]
    assert sorted(values) == wanted
    assert committed(tools.address, topic) == [RECORDS] * PARTITIONS
    [state] = tools.table("--describe", "--group", topic, "--state")
    assert state[-2:] == ["Empty", "0"]
