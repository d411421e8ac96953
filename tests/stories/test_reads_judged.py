"""The audit of a story judges what readers were given: the story's own, and one of its own."""

from __future__ import annotations

from typing import Any

import pytest

from tidelog.core.node.fetch import fetch_answers
from tidelog.core.replication.partition import Partition
from tidelog.lab.audit import CLEAN, LabVerdict
from tidelog.lab.engines.simulator import SimulatorEngine
from tidelog.lab.lab import Lab
from tidelog.lab.report import Report

ONLY_THE_LEADER_HAS_IT = "M1"


def looked_at_too_early() -> tuple[list[str], LabVerdict, Report]:
    """A consumer asks while both followers are held: what it gets, and the audit."""
    report = Report(story="too early", engine="simulator")
    lab = Lab(SimulatorEngine(seed=1), report)
    lab.cluster()
    lab.create("orders", (1, 2, 3), min_insync_replicas="1")
    lab.fill(3)
    lab.hold(2, 3)
    lab.writer("hasty", acks=1).write(ONLY_THE_LEADER_HAS_IT)
    given = lab.read(1)
    lab.release(2, 3)
    lab.until_quiet()
    return given, lab.audit(), report


def test_the_audit_reads_as_a_consumer_and_says_so() -> None:
    given, verdict, report = looked_at_too_early()

    assert given == ["r0", "r1", "r2"]
    assert verdict == CLEAN
    assert report.reads_judged["orders-0"] >= 2, "the look of the story, and the audit's consumer"
    assert any("readers of orders-0" in line for line in report.lines())


def test_a_report_without_an_audit_says_that_reads_were_not_judged() -> None:
    lines = list(Report(story="none", engine="simulator").lines())

    assert any("was not judged" in line for line in lines)


@pytest.fixture
def leaders_serve_to_the_log_end(monkeypatch: pytest.MonkeyPatch) -> None:
    read = fetch_answers.read

    def to_the_log_end(node: Any, partition: Partition, entry: Any, call: Any, **rest: Any) -> Any:
        found = read(node, partition, entry, call, **rest)
        log = partition.log
        if call.replica_id >= 0 or found.error_code or entry.call.fetch_offset < 0:
            return found
        records = log.read(entry.call.fetch_offset, bytes_max=1 << 20, end_offset=1 << 40)
        size_bytes = 0 if records is None else records.size_bytes
        # It also says that all of it is committed: the answer alone proves nothing.
        return found._replace(
            records=records, records_bytes=size_bytes, high_watermark=log.log_end_offset
        )

    monkeypatch.setattr(fetch_answers, "read", to_the_log_end)


@pytest.mark.usefixtures("leaders_serve_to_the_log_end")
def test_a_record_that_was_read_before_it_was_committed_is_found_by_the_audit() -> None:
    given, verdict, _ = looked_at_too_early()

    assert given[-1] == ONLY_THE_LEADER_HAS_IT
    assert any(text.startswith("dirty read: fetch") for text in verdict.others), verdict
