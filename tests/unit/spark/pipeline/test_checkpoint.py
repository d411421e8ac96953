"""A checkpoint is used by one run at a time, knows its plan, and tells one batch from another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.unit.spark.pipeline.good_file import GOOD, checked
from tidelog.spark.pipeline.job.checkpoint import (
    CheckpointUnusable,
    changes_since,
    lock_checkpoint,
    offer_of,
    save_plan,
)
from tidelog.spark.pipeline.table.stores import LocalStore

HOLDER = """
import sys
from tidelog.spark.pipeline.job.checkpoint import lock_checkpoint
with lock_checkpoint(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_second_run_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == b"held\n"
        with (
            pytest.raises(CheckpointUnusable, match=f"another run .* \\(process {first.pid}\\)"),
            lock_checkpoint(str(tmp_path)),
        ):
            pass
        first.kill()
    with lock_checkpoint(str(tmp_path)):
        assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"


def write_offsets(checkpoint: Path, *, time_ms: int, offsets: str) -> None:
    (checkpoint / "offsets").mkdir(exist_ok=True)
    (checkpoint / "metadata").write_text(json.dumps({"id": "query"}))
    metadata = json.dumps({"batchTimestampMs": time_ms})
    (checkpoint / "offsets" / "3").write_text(f"v1\n{metadata}\n{offsets}")


def test_a_batch_is_known_by_the_offsets_it_was_read_from(tmp_path: Path) -> None:
    write_offsets(tmp_path, time_ms=1, offsets='{"orders":{"0":5}}')
    offer = offer_of(LocalStore(), str(tmp_path), 3)
    assert (offer.query_id, offer.batch_id) == ("query", 3)
    write_offsets(tmp_path, time_ms=2, offsets='{"orders":{"0":5}}')
    assert offer_of(LocalStore(), str(tmp_path), 3) == offer, "the clock is not what was read"
    write_offsets(tmp_path, time_ms=1, offsets='{"orders":{"0":6}}')
    assert offer_of(LocalStore(), str(tmp_path), 3) != offer


def test_a_checkpoint_that_was_removed_is_told(tmp_path: Path) -> None:
    with pytest.raises(CheckpointUnusable, match="has no offsets of batch 3"):
        offer_of(LocalStore(), str(tmp_path), 3)


def test_what_has_changed_since_the_last_run_is_named(tmp_path: Path) -> None:
    plan = checked(GOOD).plan_or_raise()
    store, checkpoint = LocalStore(), str(tmp_path / "new")
    assert changes_since(store, checkpoint, plan) == []
    save_plan(store, checkpoint, plan)
    assert changes_since(store, checkpoint, plan) == []
    other = checked(GOOD.replace("amount > 0", "amount > 1")).plan_or_raise()
    assert changes_since(store, checkpoint, other) == ["steps.valid.sql"]
    save_plan(store, checkpoint, other)
    assert changes_since(store, checkpoint, other) == []
    elsewhere = replace(other, bootstrap="other:9092", master="local[1]")
    assert changes_since(store, checkpoint, elsewhere) == [], "where it runs decides nothing"
