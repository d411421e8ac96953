"""Kafka's own dump tool and ours read a compacted log: gaps, empty batches, delete horizons."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kafka import Tool, run_tool
from tests.unit.core.storage.compaction_given import COMPACT, clean, opened, put, roll
from tests.unit.core.storage.given import NOW_MS, read_all

OFFSET = re.compile(r"^\| offset: (\d+) ", re.MULTILINE)


def compacted(directory: Path) -> list[int]:
    """Writes a compacted log's files there; the offsets that are left in it."""
    rig, log = opened(COMPACT)
    for at in range(30):
        value = None if at % 6 == 5 else f"value {at}"
        put(
            log,
            (f"key-{at % 4}", value),
            (f"other-{at % 7}", str(at)),
            compression=at % 5,
            producer_id=9,
            sequence=2 * at,
        )
    roll(log, rig)
    put(log, ("key-0", "newest"))
    roll(log, rig)
    clean(log, rig)
    headers = list(log.batch_headers())
    assert any(header.delete_horizon_ms is not None for header in headers), "a tombstone stays"
    assert any(header.records_count == 0 for header in headers), "the producer's latest batch"
    left = [record.offset for record in read_all(log)]
    assert 0 < len(left) < 20
    log.close_cleanly()
    for name in rig.names():
        (directory / name).write_bytes(bytes(rig.file(name).data))
    return left


@pytest.mark.java
def test_kafkas_dump_tool_reads_every_record_that_is_left(tmp_path: Path) -> None:
    left = compacted(tmp_path)
    logs = sorted(str(path) for path in tmp_path.iterdir() if path.suffix == ".log")

    result = run_tool(
        Tool.DUMP_LOG, ["--deep-iteration", "--print-data-log", "--files", ",".join(logs)]
    )

    output = result.output + result.errors
    assert result.exit_code == 0, output
    assert [int(found) for found in OFFSET.findall(output)] == left
    assert "isvalid: true" in output and "isvalid: false" not in output
    assert f"deleteHorizonMs: OptionalLong[{NOW_MS + COMPACT.delete_retention_ms}]" in output


def test_tidelog_dump_reads_every_record_that_is_left(tmp_path: Path) -> None:
    directory = tmp_path / "orders-3"
    directory.mkdir()
    left = compacted(directory)
    command = [sys.executable, "-m", "tidelog.cli.main", "dump", "--json", "--records"]

    run = subprocess.run([*command, str(directory)], capture_output=True, text=True)

    assert run.returncode == 0, run.stderr
    lines = [json.loads(line) for line in run.stdout.splitlines()]
    assert [line["offset"] for line in lines if line["kind"] == "record"] == left
    assert all(line["crc_is_valid"] for line in lines if line["kind"] == "batch")
