"""The audit from segment files: who leads, who differs, what cannot be read."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.spark.audit_disks import START_MS, Disks, batch
from tests.unit.spark.audit import journals
from tidelog.core.wire.control_records import end_txn_marker
from tidelog.core.wire.records import build
from tidelog.spark.audit.audit import audit
from tidelog.spark.audit.errors import AuditRefused
from tidelog.spark.audit.report import AuditReport
from tidelog.spark.audit.request import AuditRequest

pytestmark = pytest.mark.long


def entry(number: int, value: str, *, offset: int | None = None, **more: Any) -> str:
    place = number if offset is None else offset
    return journals.entry(
        number,
        key="k",
        value_sha256=hashlib.sha256(value.encode()).hexdigest(),
        offset=place,
        timestamp_ms=START_MS + place,
        **more,
    )


def judge(spark: SparkSession, disks: Disks, *lines: str, **more: Any) -> AuditReport:
    journal = disks.root / "acks.jsonl"
    journals.write(journal, journals.begin(), *lines, journals.end(len(lines)))
    return audit(spark, AuditRequest(journals=(journal,), segments=(str(disks.root),), **more))


def places(report: AuditReport) -> list[tuple[str, int, list[int]]]:
    return [(each["finding"], each["offset"], each["replicas"]) for each in report.first]


ABC = [entry(0, "a"), entry(1, "b"), entry(2, "c")]


def test_equal_replicas_agree_and_one_that_lags_is_no_finding(
    spark: SparkSession, tmp_path: Path
) -> None:
    disks = Disks(tmp_path / "data")
    whole = [batch(0, "a", "b"), batch(2, "c")]
    disks.write(1, whole, high_watermark=3)
    disks.write(2, whole[:1], whole[1:], high_watermark=3)
    disks.write(3, whole[:1], high_watermark=1)
    report = judge(spark, disks, *ABC)
    assert report.is_clean and report.counts == {("kept", "all"): 3}
    (facts,) = report.facts.partitions.values()
    assert facts.replicas == (1, 2, 3) and "replica 1" in facts.read_from


def test_a_dead_leader_may_have_what_the_others_never_had(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Above what it knew to be committed it differs, and will cut it off: only the loss counts."""
    disks = Disks(tmp_path / "data")
    common = batch(0, "a", "b")
    new = [common, batch(2, "x", leader_epoch=4), batch(3, "y", leader_epoch=4)]
    disks.write(1, [common, batch(2, "c")], high_watermark=2)
    disks.write(2, new, high_watermark=4, leader_epoch=4)
    disks.write(3, new, high_watermark=4, leader_epoch=4)
    report = judge(spark, disks, *ABC)
    assert places(report) == [("lost", 2, [1])]
    assert report.counts[("unexpected", None)] == 2


def test_replicas_that_differ_below_what_both_knew_to_be_committed(
    spark: SparkSession, tmp_path: Path
) -> None:
    """Another record, a missing one, and one too many: each named with both replicas."""
    disks = Disks(tmp_path / "data")
    disks.write(1, [batch(0, "a"), batch(1, "b"), batch(2, "c")], high_watermark=3, leader_epoch=1)
    disks.write(2, [batch(0, "a"), batch(1, "B"), batch(2, "c")], high_watermark=3)
    disks.write(3, [batch(0, "a"), batch(2, "c")], high_watermark=3)
    report = judge(spark, disks, *ABC)
    assert report.findings == {"diverged": 2}
    assert places(report) == [("diverged", 1, [2, 1]), ("diverged", 1, [3, 1])]
    words = sorted(each["evidence"] for each in report.first)
    assert words[0].startswith("replica 2 has another record here than replica 1; both have")
    assert words[1].startswith("replica 3 has nothing here, unlike replica 1")


def test_the_same_record_of_another_leader_epoch_is_another_record(
    spark: SparkSession, tmp_path: Path
) -> None:
    disks = Disks(tmp_path / "data")
    disks.write(1, [batch(0, "a", "b", leader_epoch=2)], high_watermark=2, leader_epoch=2)
    disks.write(2, [batch(0, "a", "b", leader_epoch=1)], high_watermark=2, leader_epoch=1)
    report = judge(spark, disks, *ABC[:2])
    assert report.findings == {"diverged": 2}


def test_replicas_are_compacted_each_in_its_own_time(spark: SparkSession, tmp_path: Path) -> None:
    disks = Disks(tmp_path / "data")
    disks.write(1, [batch(0, "a"), batch(1, "b"), batch(2, "c")], high_watermark=3)
    disks.write(2, [batch(0, "a"), batch(2, "c")], high_watermark=3)
    assert judge(spark, disks, *ABC, is_compacted=True).is_clean
    assert judge(spark, disks, *ABC).findings == {"diverged": 1}


def test_a_batch_that_decayed(spark: SparkSession, tmp_path: Path) -> None:
    """Below what is committed it is a finding; a torn end of the newest segment is none."""
    disks = Disks(tmp_path / "data")
    whole = [batch(0, "a"), batch(1, "b"), batch(2, "c")]
    decayed = bytearray(whole[1])
    decayed[-4] ^= 1
    disks.write(1, [*whole, batch(3, "torn")[:70]], high_watermark=3)
    disks.write(2, [whole[0], bytes(decayed), whole[2]], high_watermark=3)
    report = judge(spark, disks, *ABC)
    assert places(report) == [("corrupt", 1, [2])]
    assert "wrong checksum" in report.first[0]["evidence"]


def test_transactions_are_decided_by_the_markers_in_the_log(
    spark: SparkSession, tmp_path: Path
) -> None:
    disks = Disks(tmp_path / "data")
    mine = {"producer_id": 9, "producer_epoch": 0, "transactional": True}
    marks = [
        bytes(
            build(
                [end_txn_marker(commit=commit, coordinator_epoch=0)],
                base_offset=offset,
                producer_id=9,
                producer_epoch=0,
                transactional=True,
                control=True,
            )
        )
        for offset, commit in ((1, False), (3, True))
    ]
    log = [batch(0, "a", **mine), marks[0], batch(2, "b", **mine), marks[1], batch(4, "c", **mine)]
    disks.write(1, log[:3], log[3:], high_watermark=5)
    report = judge(spark, disks, entry(0, "a"), entry(1, "b", offset=2), entry(2, "c", offset=4))
    assert report.is_clean
    assert report.counts == {("aborted", "all"): 1, ("kept", "all"): 1, ("open", "all"): 1}


def test_segments_of_no_topic_and_of_two(spark: SparkSession, tmp_path: Path) -> None:
    disks = Disks(tmp_path / "data")
    for node, topic_id in ((1, "one"), (2, "two")):
        directory = disks.write(node, [batch(0, "a")])
        (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    with pytest.raises(AuditRefused, match=r"of topic id two, .* of one: one of them was deleted"):
        judge(spark, disks, *ABC)
    journal = journals.write(tmp_path / "j", journals.begin(topic="payments"))
    with pytest.raises(AuditRefused, match="no replica of topic 'payments' is in these"):
        audit(spark, AuditRequest(journals=(journal,), segments=(str(disks.root),)))


def test_a_journal_about_a_topic_that_was_made_anew(spark: SparkSession, tmp_path: Path) -> None:
    disks = Disks(tmp_path / "data")
    directory = disks.write(1, [batch(0, "a")])
    (directory / "partition.metadata").write_text("version: 0\ntopic_id: new\n")
    journal = journals.write(tmp_path / "j", journals.begin(topic_id="old"), entry(0, "a"))
    with pytest.raises(AuditRefused, match=r"j:1: run r1 wrote to topic id old, but orders now"):
        audit(spark, AuditRequest(journals=(journal,), segments=(str(disks.root),)))


def test_a_line_that_is_no_entry_is_told_from_within_a_task(
    spark: SparkSession, tmp_path: Path
) -> None:
    disks = Disks(tmp_path / "data")
    disks.write(1, [batch(0, "a")])
    with pytest.raises(AuditRefused, match=r"acks.jsonl:3: the outcome 'fine'; it is one of"):
        judge(spark, disks, entry(0, "a"), entry(1, "b", outcome="fine"))
