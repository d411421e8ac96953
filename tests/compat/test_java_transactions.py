"""Kafka's own tools for transactions: every verb, and the dump of both internal topics."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import confluent_kafka
import pytest

from tests.compat.clients import DELIVERY_S
from tests.kafka import Tool, ToolResult
from tests.kafka.tool_machine import ToolMachine
from tests.process.broker import Setting
from tests.process.target import Target, running_target
from tests.process.waiting import wait_until
from tests.process.wire import WireClient, batch_of, produce_fields

pytestmark = [pytest.mark.java, pytest.mark.long]

SETTINGS: dict[str, Setting] = {
    "group.initial.rebalance.delay.ms": 0,
    "offsets.topic.num.partitions": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.partition.verification.enable": False,
}
"""Unverified writes are how a transaction comes to hang."""
EMPTY, ONGOING, PREPARE_COMMIT, PREPARE_ABORT, COMPLETE_COMMIT, COMPLETE_ABORT = range(6)
Rows = list[list[str]]


class TransactionTools:
    """The tools, always on the same broker."""

    def __init__(self, machine: ToolMachine, target: Target) -> None:
        self._machine = machine
        self.target = target
        self.address = target.address

    def run(self, *arguments: str, tool: Tool = Tool.TRANSACTIONS) -> ToolResult:
        return self._machine.run(tool, ["--bootstrap-server", self.address, *arguments])

    def works(self, *arguments: str, tool: Tool = Tool.TRANSACTIONS) -> str:
        result = self.run(*arguments, tool=tool)
        assert result.exit_code == 0, result.output + result.errors
        return result.output

    def table(self, *arguments: str) -> Rows:
        """The rows below the headings."""
        return [line.split() for line in self.works(*arguments).splitlines()[1:] if line.strip()]

    def dump(self, topic: str, decoder: str) -> str:
        """The segments of its first partition."""
        files = sorted((self.target.log_directory / f"{topic}-0").glob("*.log"))
        arguments = ["--files", ",".join(map(str, files)), decoder]
        result = self._machine.run(Tool.DUMP_LOG, arguments)
        assert result.exit_code == 0, result.errors
        return result.output

    def new_topic(self, name: str) -> str:
        with WireClient(self.address) as wire:
            wire.create_topic(name, partitions=2)
        return name


@pytest.fixture(scope="module", name="tools")
def the_tools() -> Iterator[TransactionTools]:
    with running_target(SETTINGS) as target, ToolMachine() as machine:
        yield TransactionTools(machine, target)


def begun(tools: TransactionTools, topic: str) -> confluent_kafka.Producer:
    """A producer of the topic's name with a record in each partition, in an open transaction."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": tools.address, "transactional.id": topic}
    )
    producer.init_transactions(DELIVERY_S)
    producer.begin_transaction()
    for index in (0, 1):
        producer.produce(topic, "x", partition=index)
    assert producer.flush(DELIVERY_S) == 0
    return producer


def state_of(tools: TransactionTools, transactional_id: str) -> str:
    return {row[0]: row[3] for row in tools.table("list")}[transactional_id]


def test_a_transaction_is_listed_and_described(tools: TransactionTools) -> None:
    topic = tools.new_topic("listed")
    producer = begun(tools, topic)

    [listed] = tools.table("list", "--transactional-id-pattern", "list.*")
    assert (listed[:2], listed[3]) == ([topic, "1"], "Ongoing")
    assert tools.table("list", "--transactional-id-pattern", "other.*") == []
    assert tools.table("list", "--duration-filter", "10000000") == []
    assert [topic] == [row[0] for row in tools.table("list", "--duration-filter", "0")]
    [described] = tools.table("describe", "--transactional-id", topic)
    assert described[:5] == ["1", topic, listed[2], "0", "Ongoing"]
    assert described[5] == "60000"
    assert sorted(described[8].split(",")) == [f"{topic}-0", f"{topic}-1"]
    where = ("--topic", topic, "--partition", "1")
    [open_one] = tools.table("describe-producers", *where)
    assert open_one[:2] == [listed[2], "0"]
    assert (open_one[3], open_one[5]) == ("0", "0")
    [of_replica] = tools.table("describe-producers", *where, "--broker-id", "1")
    assert of_replica == open_one

    producer.commit_transaction(DELIVERY_S)
    wait_until(lambda: state_of(tools, topic) == "CompleteCommit", "the markers")
    [ended] = tools.table("describe-producers", *where)
    assert (ended[2], ended[5]) == ("0", "None")
    [described] = tools.table("describe", "--transactional-id", topic)
    assert described[4] == "CompleteCommit" and len(described) == 8, "no partition is left"
    unknown = tools.run("describe", "--transactional-id", "nobody")
    assert unknown.exit_code == 1 and "could not be found" in unknown.errors


@pytest.mark.scenario("X-30")
def test_a_hanging_transaction_is_found_and_aborted(tools: TransactionTools) -> None:
    """Of long ago, and unknown to any coordinator."""
    topic = tools.new_topic("hanging")
    with WireClient(tools.address) as wire:
        producer_id, producer_epoch = wire.new_producer()
        batch = batch_of(
            b"lost",
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        fields = {**produce_fields(topic, batch), "transactional_id": "lost-1"}
        answer = wire.ask("Produce", 9, **fields)
        assert answer.responses[0].partition_responses[0].error_code == 0
        assert wire.fetch(topic, 0).last_stable_offset == 0

        [found] = tools.table("find-hanging", "--broker-id", "1")
        assert found[:4] == [topic, "0", str(producer_id), str(producer_epoch)]
        assert tools.table("find-hanging", "--topic", topic, "--partition", "1") == []
        where = ("--topic", topic, "--partition", "0")
        assert tools.run("abort", *where, "--start-offset", "1").exit_code == 1
        tools.works("abort", *where, "--start-offset", found[5])

        assert tools.table("find-hanging", "--topic", topic) == []
        assert wire.fetch(topic, 0).last_stable_offset == 2


def test_a_transaction_is_terminated_by_force(tools: TransactionTools) -> None:
    """Its producer is fenced, and nothing of it is read."""
    topic = tools.new_topic("forced")
    producer = begun(tools, topic)

    tools.works("forceTerminateTransaction", "--transactionalId", topic)

    with pytest.raises(confluent_kafka.KafkaException, match="fenced"):
        producer.commit_transaction(DELIVERY_S)
    assert state_of(tools, topic) in ("Empty", "CompleteAbort")
    with WireClient(tools.address) as wire:
        assert wire.fetch(topic, 0).last_stable_offset == 2


def test_the_transaction_version_is_lowered_and_raised(tools: TransactionTools) -> None:
    for verb, said, level in (("downgrade", "downgraded", "1"), ("upgrade", "upgraded", "2")):
        wanted = ("--feature", f"transaction.version={level}")
        output = tools.works(verb, *wanted, tool=Tool.FEATURES)
        assert f"transaction.version was {said} to {level}" in output
        shown = tools.works("describe", tool=Tool.FEATURES)
        assert re.search(rf"transaction\.version\s.*FinalizedVersionLevel: {level}\s", shown)


@pytest.mark.scenario("D4-T9", "N43")
def test_the_dump_tool_reads_both_internal_topics(tools: TransactionTools) -> None:
    """Kafka's own decoders find each step of a transaction, and the offsets that belong to it."""
    topic = tools.new_topic("dumped")
    producer = begun(tools, topic)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": tools.address, "group.id": topic})
    metadata = consumer.consumer_group_metadata()
    offsets = [confluent_kafka.TopicPartition(topic, 1, 7)]
    producer.send_offsets_to_transaction(offsets, metadata, DELIVERY_S)
    producer.commit_transaction(DELIVERY_S)
    wait_until(lambda: state_of(tools, topic) == "CompleteCommit", "the markers")
    consumer.close()

    steps = transaction_steps(tools.dump("__transaction_state", "--transaction-log-decoder"), topic)
    states = [each["transactionStatus"] for each in steps]
    assert (states[0], states[-2:]) == (EMPTY, [PREPARE_COMMIT, COMPLETE_COMMIT])
    assert set(states[1:-2]) == {ONGOING}
    places = {
        (each["topic"], index)
        for each in steps[-2]["transactionPartitions"]
        for index in each["partitionIds"]
    }
    assert places == {(topic, 0), (topic, 1), ("__consumer_offsets", 0)}
    assert len({each["producerId"] for each in steps}) == 1

    text = tools.dump("__consumer_offsets", "--offsets-decoder")
    key = f'"group":"{topic}","topic":"{topic}","partition":1'
    assert re.search(rf'key: {{.*{key}.*}} payload: {{.*"offset":7,', text), text
    assert "endTxnMarker: COMMIT coordinatorEpoch: 0" in text
    assert set(re.findall(r"isvalid: (\w+)", text)) == {"true"}


def transaction_steps(text: str, transactional_id: str) -> list[Any]:
    """The records of one transactional id, in the order of the log."""
    key = re.escape(f'{{"transactionalId":"{transactional_id}"}}')
    payloads = re.findall(rf'key: {{"type":"0","data":{key}}} payload: (\{{.*\}})', text)
    return [json.loads(payload)["data"] for payload in payloads]
