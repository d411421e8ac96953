"""Kafka's own dump tool reads every file that a log writes, and finds nothing wrong in them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kafka import Tool, run_tool
from tests.unit.core.storage.given import DIRECTORY, NOW_MS, Rig, append, batch
from tidelog.core.storage.config import LogConfig
from tidelog.core.storage.log import Log
from tidelog.core.wire.control_records import end_txn_marker
from tidelog.core.wire.records import build

pytestmark = pytest.mark.java

CONFIG = LogConfig(segment_bytes=2_000, index_interval_bytes=300)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a log with two leaders, idempotent producers and an aborted transaction."""
    rig = Rig(CONFIG)
    log = rig.open()
    for at in range(40):
        view = batch(
            3,
            producer_id=7,
            producer_epoch=0,
            sequence=at * 3,
            timestamp_ms=NOW_MS + at,
            compression=at % 5,
        )
        assert append(log, view, leader_epoch=at // 20).error == 0
    abort_a_transaction(log)
    log.close_cleanly()
    directory = tmp_path_factory.mktemp("orders-3")
    for name in rig.names():
        (directory / name).write_bytes(bytes(rig.file(name).data))
    assert len(log.files.segments) > 2
    assert DIRECTORY.endswith("orders-3")
    return directory


def abort_a_transaction(log: Log) -> None:
    view = batch(2, producer_id=9, producer_epoch=1, sequence=0, transactional=True)
    assert append(log, view, leader_epoch=1).error == 0
    marker = build(
        [end_txn_marker(commit=False, coordinator_epoch=4, timestamp_ms=NOW_MS)],
        producer_id=9,
        producer_epoch=1,
        transactional=True,
        control=True,
    )
    result = log.append_as_leader(
        memoryview(marker), leader_epoch=1, wall_ms=NOW_MS, from_client=False
    )
    assert result.error == 0


def dump(files: Path, suffix: str, *options: str) -> str:
    paths = sorted(str(path) for path in files.iterdir() if path.name.endswith(suffix))
    assert paths, suffix
    result = run_tool(Tool.DUMP_LOG, [*options, "--files", ",".join(paths)])
    assert result.exit_code == 0, result.errors
    return result.output + result.errors


def test_the_segments_hold_every_record_with_a_good_checksum(files: Path) -> None:
    output = dump(files, ".log", "--print-data-log", "--deep-iteration")

    assert output.count("isvalid: true") == 42
    assert "isvalid: false" not in output
    for offset in range(122):
        assert f"offset: {offset} " in output
    assert "partitionLeaderEpoch: 1" in output
    assert "endTxnMarker: ABORT coordinatorEpoch: 4" in output


def test_the_offset_and_time_indexes_agree_with_the_segments(files: Path) -> None:
    for suffix in (".index", ".timeindex"):
        output = dump(files, suffix, "--index-sanity-check")
        assert output.count("passed sanity check") >= 3, output
        output = dump(files, suffix, "--verify-index-only")
        assert "mismatch" not in output.lower(), output
        assert "Found timestamp" not in output, output


def test_the_time_index_lists_growing_timestamps(files: Path) -> None:
    output = dump(files, ".timeindex")

    assert f"timestamp: {NOW_MS + 39}" in output


def test_the_aborted_transaction_is_in_its_index(files: Path) -> None:
    output = dump(files, ".txnindex")

    assert "producerId: 9 firstOffset: 120 lastOffset: 122 lastStableOffset: 123" in output


def test_the_snapshot_holds_both_producers(files: Path) -> None:
    output = dump(files, ".snapshot")

    assert "producerId: 7 producerEpoch: 0 coordinatorEpoch: -1" in output
    assert "lastSequence: 119 lastOffset: 119" in output
    assert "producerId: 9 producerEpoch: 1 coordinatorEpoch: 4" in output
