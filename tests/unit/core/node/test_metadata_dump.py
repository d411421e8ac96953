"""Apache Kafka's own dump tool reads our metadata log, record by record."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.kafka import Tool, run_tool, unavailable_reason
from tests.unit.core.metadata.given import broker, topic_id
from tests.unit.core.node.metadata_lives import SEGMENT, Machine, new_topic
from tidelog.core.metadata.records import (
    UNFENCED,
    BrokerRegistrationChangeRecord,
    ClearElrRecord,
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    UnregisterBrokerRecord,
)

PAYLOAD = re.compile(r"payload: (\{.*\})$")
PROPOSED = [
    broker(1, fenced=True),
    BrokerRegistrationChangeRecord(broker_id=1, broker_epoch=1, fenced=UNFENCED),
    *new_topic(1),
    ConfigRecord(resource_type=2, resource_name="t1", name="retention.ms", value="5"),
    PartitionChangeRecord(partition_id=1, topic_id=topic_id(1), leader=1, last_known_elr=[1]),
    ProducerIdsRecord(broker_id=1, broker_epoch=1, next_producer_id=1_000),
    NoOpRecord(),
    ClearElrRecord(topic_name="t1"),
    RemoveTopicRecord(topic_id=topic_id(1)),
    UnregisterBrokerRecord(broker_id=1, broker_epoch=1),
]


@pytest.mark.java
def test_kafkas_dump_tool_understands_every_record(tmp_path: Path) -> None:
    """Every record type that we write comes back from the tool, with its fields."""
    if reason := unavailable_reason():
        pytest.skip(reason)
    machine = Machine()
    run = machine.start()
    run.propose(PROPOSED, [], "")
    machine.settle()
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(machine.bytes_of(SEGMENT))

    dumped = run_tool(Tool.DUMP_LOG, ["--cluster-metadata-decoder", "--files", str(segment)])

    assert dumped.exit_code == 0, dumped.errors
    assert "LeaderChange" in dumped.output
    records = [
        json.loads(found[1])
        for line in dumped.output.splitlines()
        if (found := PAYLOAD.search(line)) is not None
    ]
    kinds = [record["type"] for record in records]
    assert kinds == [
        *["FEATURE_LEVEL_RECORD"] * 4,
        "CONFIG_RECORD",
        "REGISTER_BROKER_RECORD",
        "BROKER_REGISTRATION_CHANGE_RECORD",
        "TOPIC_RECORD",
        *["PARTITION_RECORD"] * 2,
        "CONFIG_RECORD",
        "PARTITION_CHANGE_RECORD",
        "PRODUCER_IDS_RECORD",
        "NO_OP_RECORD",
        "CLEAR_ELR_RECORD",
        "REMOVE_TOPIC_RECORD",
        "UNREGISTER_BROKER_RECORD",
    ]
    by_kind = dict(zip(kinds, (record["data"] for record in records), strict=True))
    assert by_kind["REGISTER_BROKER_RECORD"]["endPoints"] == [
        {"name": "PLAINTEXT", "host": "host-1", "port": 9092, "securityProtocol": 0}
    ]
    assert by_kind["PARTITION_RECORD"]["replicas"] == [1]
    assert by_kind["PARTITION_RECORD"]["leaderEpoch"] == 0
    assert by_kind["PARTITION_CHANGE_RECORD"]["lastKnownElr"] == [1]
    assert by_kind["PRODUCER_IDS_RECORD"]["nextProducerId"] == 1_000


@pytest.mark.java
def test_kafkas_dump_tool_reads_our_snapshots(tmp_path: Path) -> None:
    """The header, everything that is still true, and the footer."""
    if reason := unavailable_reason():
        pytest.skip(reason)
    machine = Machine()
    run = machine.start(settings={"metadata.log.max.record.bytes.between.snapshots": "1"})
    run.propose([broker(1), *new_topic(1), *new_topic(2)], [], "")
    run.propose([RemoveTopicRecord(topic_id=topic_id(1))], [], "")
    machine.settle()
    run.propose([NoOpRecord()], [], "")
    machine.settle()
    newest = run.metadata.snapshots.newest
    assert newest is not None
    name = f"{newest.end_offset:020d}-{newest.quorum_epoch:010d}.checkpoint"
    (tmp_path / name).write_bytes(machine.bytes_of(f"data/__cluster_metadata-0/{name}"))

    dumped = run_tool(
        Tool.DUMP_LOG, ["--cluster-metadata-decoder", "--files", str(tmp_path / name)]
    )

    assert dumped.exit_code == 0, dumped.errors
    assert f"Snapshot end offset: {newest.end_offset}, epoch: 1" in dumped.output
    assert "SnapshotHeader" in dumped.output and "SnapshotFooter" in dumped.output
    kinds = [
        json.loads(found[1])["type"]
        for line in dumped.output.splitlines()
        if (found := PAYLOAD.search(line)) is not None
    ]
    assert kinds == [
        *["FEATURE_LEVEL_RECORD"] * 4,
        "REGISTER_BROKER_RECORD",
        "TOPIC_RECORD",
        *["PARTITION_RECORD"] * 2,
        "CONFIG_RECORD",
    ]
