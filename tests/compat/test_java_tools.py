"""Kafka's own command line tools work on the broker, and its dump tool on the segment files."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.compat.clients import DELIVERY_S
from tests.kafka import Tool, ToolResult, run_tool
from tests.process.fixtures import NewTopic
from tests.process.target import Target, running_target
from tests.process.wire import WireClient, batch_of

pytestmark = pytest.mark.java


def tool(which: Tool, address: str, *arguments: str, standard_input: str = "") -> ToolResult:
    return run_tool(
        which, ["--bootstrap-server", address, *arguments], standard_input=standard_input
    )


def works(result: ToolResult) -> str:
    assert result.exit_code == 0, result.output + result.errors
    return result.output


def test_topics_are_created_described_altered_listed_and_deleted(bootstrap: str) -> None:
    made = (
        "--create",
        "--topic",
        "java-life",
        "--partitions",
        "2",
        "--config",
        "retention.ms=1000",
    )
    works(tool(Tool.TOPICS, bootstrap, *made))
    works(tool(Tool.TOPICS, bootstrap, "--alter", "--topic", "java-life", "--partitions", "4"))
    again = tool(Tool.TOPICS, bootstrap, *made)
    assert again.exit_code != 0
    assert "already exists" in again.output + again.errors

    described = works(tool(Tool.TOPICS, bootstrap, "--describe", "--topic", "java-life"))
    assert re.search(r"PartitionCount: 4\s+ReplicationFactor: 1", described)
    assert "retention.ms=1000" in described
    assert re.search(r"Partition: 3\s+Leader: 1\s+Replicas: 1\s+Isr: 1", described)

    works(tool(Tool.TOPICS, bootstrap, "--delete", "--topic", "java-life"))
    listed = works(tool(Tool.TOPICS, bootstrap, "--list"))
    assert "java-life" not in listed.splitlines()


def test_configs_are_described_and_altered(bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic()
    entity = ("--entity-type", "topics", "--entity-name", topic)
    works(
        tool(Tool.CONFIGS, bootstrap, "--alter", *entity, "--add-config", "segment.bytes=2000000")
    )
    described = works(tool(Tool.CONFIGS, bootstrap, "--describe", "--all", *entity))
    assert "segment.bytes=2000000" in described
    assert "max.message.bytes=1048588" in described
    refused = tool(Tool.CONFIGS, bootstrap, "--alter", *entity, "--add-config", "retention.ms=soon")
    assert refused.exit_code != 0
    entity = ("--entity-type", "brokers", "--entity-name", "1")
    broker = works(tool(Tool.CONFIGS, bootstrap, "--describe", "--all", *entity))
    assert "message.max.bytes=1048588" in broker


def test_offsets_are_shown_and_records_deleted(
    bootstrap: str, wire: WireClient, new_topic: NewTopic, tmp_path: Path
) -> None:
    topic = new_topic(partitions=2)
    wire.produce(topic, batch_of(*[b"x"] * 10, timestamp_ms=1_600_000_000_000))
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 4}], "version": 1}
    file = tmp_path / "records.json"
    file.write_text(json.dumps(wanted))

    deleted = works(tool(Tool.DELETE_RECORDS, bootstrap, "--offset-json-file", str(file)))

    assert "low_watermark: 4" in deleted
    latest = works(tool(Tool.GET_OFFSETS, bootstrap, "--topic", topic))
    assert latest.splitlines() == [f"{topic}:0:10", f"{topic}:1:0"]
    earliest = works(tool(Tool.GET_OFFSETS, bootstrap, "--topic", topic, "--time", "earliest"))
    assert earliest.splitlines() == [f"{topic}:0:4", f"{topic}:1:0"]
    by_time = works(
        tool(
            Tool.GET_OFFSETS, bootstrap, "--topic-partitions", f"{topic}:0", "--time=1600000000007"
        )
    )
    assert by_time.splitlines() == [f"{topic}:0:7"]


def test_the_console_consumer_starts_anywhere_in_a_partition(
    bootstrap: str, wire: WireClient, new_topic: NewTopic
) -> None:
    topic = new_topic(partitions=2)
    wire.produce(topic, batch_of(*[b"%d" % n for n in range(50)]), partition=1)
    output = works(
        tool(
            Tool.CONSOLE_CONSUMER,
            bootstrap,
            *("--topic", topic, "--partition", "1", "--offset", "47", "--max-messages", "3"),
        )
    )
    assert output.splitlines() == ["47", "48", "49"]


def test_versions_and_features_are_shown(bootstrap: str) -> None:
    shown = works(tool(Tool.BROKER_API_VERSIONS, bootstrap))
    assert re.search(r"Produce\(0\): 0 to 13 \[usable: 13\]", shown)
    assert re.search(r"Fetch\(1\): 4 to 18 \[usable: 18\]", shown)


@pytest.fixture(scope="module")
def dumped() -> Iterator[tuple[Target, Path]]:
    """A partition of several segments, written by an idempotent producer; the broker is stopped."""
    with running_target() as broker:
        _write_some_segments(broker)
        yield broker, broker.log_directory / "dumped-0"


def _write_some_segments(broker: Target) -> None:
    with WireClient(broker.address) as wire:
        wire.create_topic("dumped", configs={"segment.bytes": "1048576"})
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.address, "enable.idempotence": True, "compression.type": "lz4"}
        | {"batch.num.messages": 10}
    )
    for n in range(300):
        noise = random.Random(n).randbytes(6_000)
        producer.produce("dumped", noise + b"x" * 4_000, key=b"%d" % n, headers=[("n", b"%d" % n)])
    assert producer.flush(DELIVERY_S) == 0
    assert broker.stop() in (0, 143)


def test_the_dump_tool_reads_segments_indexes_and_snapshots(dumped: tuple[Target, Path]) -> None:
    """Batches valid, offsets and sequences in order, indexes sane, the producer's state there."""
    _, directory = dumped
    segments = sorted(directory.glob("*.log"))
    assert len(segments) >= 2
    text = _dump(segments, "--print-data-log")
    offsets = [int(n) for n in re.findall(r"^\| offset: (\d+)", text, re.MULTILINE)]
    assert offsets == list(range(300))
    assert re.findall(r"isvalid: (\w+)", text) == ["true"] * text.count("baseOffset:")
    assert set(re.findall(r"compresscodec: (\w+)", text)) == {"lz4"}
    assert set(re.findall(r"partitionLeaderEpoch: (-?\d+)", text)) == {"0"}
    firsts = [int(n) for n in re.findall(r"baseSequence: (\d+)", text)]
    assert firsts == [int(n) for n in re.findall(r"baseOffset: (\d+)", text)]

    indexes = sorted(directory.glob("*.index"))
    times = sorted(directory.glob("*.timeindex"))
    assert len(indexes) == len(times) == len(segments)
    checked = _dump([*indexes, *times], "--index-sanity-check")
    assert checked.count("passed sanity check") == len(indexes) + len(times)
    plain = _dump([*indexes, *times])
    assert "Mismatches" not in plain and "not found in log" not in plain.lower()
    assert len(re.findall(r"^offset: \d+ position: \d+", plain, re.MULTILINE)) > 10

    snapshots = sorted(directory.glob("*.snapshot"))
    state = _dump(snapshots[-1:])
    assert re.search(r"producerId: \d+ producerEpoch: 0 .*lastSequence: 299", state), state


def test_the_leader_epochs_and_the_topic_id_are_in_kafkas_files(
    dumped: tuple[Target, Path],
) -> None:
    _, directory = dumped
    lines = (directory / "leader-epoch-checkpoint").read_text().splitlines()
    assert lines == ["0", "1", "0 0"]
    metadata = (directory / "partition.metadata").read_text().splitlines()
    assert metadata[0] == "version: 0"
    assert re.fullmatch(r"topic_id: [\w-]{22}", metadata[1])


def test_the_dump_tool_reads_the_metadata_log(dumped: tuple[Target, Path]) -> None:
    """Topics and configs are records that Kafka's own decoder understands."""
    broker, _ = dumped
    segments = sorted((broker.log_directory / "__cluster_metadata-0").glob("*.log"))
    text = _dump(segments, "--cluster-metadata-decoder")
    records = [json.loads(line) for line in re.findall(r'payload: (\{"type".*)$', text, re.M)]
    topics = [r["data"]["name"] for r in records if r["type"] == "TOPIC_RECORD"]
    assert topics == ["dumped"]
    kinds = {r["type"] for r in records}
    assert {"PARTITION_RECORD", "CONFIG_RECORD", "FEATURE_LEVEL_RECORD"} <= kinds


def _dump(files: list[Path], *options: str) -> str:
    names = ",".join(str(file) for file in files)
    return works(run_tool(Tool.DUMP_LOG, ["--files", names, *options]))


def test_settings_of_a_group_are_altered_and_described(bootstrap: str) -> None:
    entity = ("--entity-type", "groups", "--entity-name", "java-group")
    setting = "consumer.session.timeout.ms"
    works(tool(Tool.CONFIGS, bootstrap, "--alter", *entity, "--add-config", f"{setting}=50000"))
    described = works(tool(Tool.CONFIGS, bootstrap, "--describe", *entity))
    assert f"{setting}=50000" in described
    works(tool(Tool.CONFIGS, bootstrap, "--alter", *entity, "--delete-config", setting))
