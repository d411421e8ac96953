"""The control: without the look at the marker a killed batch comes twice, and the audit names it.

The same stream with the look at the marker is clean.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kafka import KafkaCluster
from tests.spark.audit_writers import Writer
from tests.spark.stream_fuses import Fuse
from tests.spark.stream_pipes import SOURCE_PARTITIONS, Pipe
from tests.spark.stream_runs import KILLED, ROOT, START_PATIENCE_S, Programs

pytestmark = [
    pytest.mark.java,
    pytest.mark.long,
    pytest.mark.xdist_group("spark-campaigns"),
]

RECORDS = 12
LIMIT = 8


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    with Programs(tmp_path) as made:
        yield made


def audited(pipe: Pipe, journal: Path) -> tuple[int, Any]:
    """The exit code of `tidelog audit`, and what it tells."""
    command = [sys.executable, "-m", "tidelog.cli.main", "audit", "--json", "--strict"]
    where = ["--acks", str(journal), "--bootstrap", pipe.bootstrap, "--topic", pipe.source]
    told = subprocess.run(
        [*command, *where, "--published", pipe.topic],
        capture_output=True,
        text=True,
        timeout=START_PATIENCE_S,
        cwd=ROOT,
        check=False,
    )
    assert told.stdout, told.stderr
    return told.returncode, json.loads(told.stdout)


@pytest.mark.parametrize("is_checked", [False, True], ids=["marker unread", "marker read"])
def test_the_marker_is_what_keeps_a_batch_from_being_published_twice(
    kafka3: KafkaCluster, tmp_path: Path, programs: Programs, is_checked: bool
) -> None:
    pipe = Pipe(kafka3, f"stream-control-{is_checked}".lower(), tmp_path)
    journal = tmp_path / "acks.jsonl"
    with Writer(pipe.bootstrap, journal, pipe.source) as writer:
        for partition in range(SOURCE_PARTITIONS):
            writer.send_all(f"order {partition}", RECORDS, partition=partition)

    dead = programs.go(pipe.wish(limit=LIMIT, fuses=[Fuse("commit: after EndTxn", 2)]))
    assert dead.wait() == KILLED, dead.story()
    next_one = programs.go(pipe.wish(is_last=True, is_marker_checked=is_checked), is_last=True)
    assert next_one.wait() == 0, next_one.story()

    published = pipe.committed()
    code, report = audited(pipe, journal)
    twice = {value for value in published if published.count(value) == 2}
    if is_checked:
        assert not twice and (code, report["findings"]) == (0, {})
        return
    assert len(twice) == LIMIT == len(published) - SOURCE_PARTITIONS * RECORDS
    assert (code, report["findings"]) == (1, {"published twice": LIMIT})
    assert {each["finding"] for each in report["first_findings"]} == {"published twice"}
