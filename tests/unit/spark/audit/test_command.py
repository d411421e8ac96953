"""`tidelog audit` says what is wrong with its input in one line, before Spark takes its time."""

from __future__ import annotations

import importlib.util
import io
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from tests.process.ports import free_port
from tests.unit.spark.audit.journals import begin, end, entry, write
from tidelog.cli.app import app
from tidelog.cli.audit.report import print_report
from tidelog.spark import session
from tidelog.spark.audit import launcher
from tidelog.spark.audit.audited_topic import AuditedPartition, AuditedTopic
from tidelog.spark.audit.findings import COLUMNS
from tidelog.spark.audit.journal_index import index_journals
from tidelog.spark.audit.report import AuditReport, PublishedCounts
from tidelog.spark.java import JavaMissing

NOT_JUDGED = 2


def audit(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, arguments)])


def complaint(result: Result) -> str:
    assert result.exit_code == NOT_JUDGED, result.output
    lines = result.stderr.splitlines()
    assert len(lines) == 1 and result.stdout == "", result.output
    return lines[0]


def test_a_journal_that_is_none(tmp_path: Path) -> None:
    path = write(tmp_path / "acks.jsonl", "hello")
    text = complaint(audit("--acks", path))
    assert text.startswith(f"tidelog audit: {path}:1: no acks journal: it begins with 'hello'")


def test_a_journal_that_is_not_there(tmp_path: Path) -> None:
    text = complaint(audit("--acks", tmp_path / "nothing"))
    assert text == f"tidelog audit: {tmp_path}/nothing cannot be read: No such file or directory"


def test_journals_about_several_topics(tmp_path: Path) -> None:
    path = write(tmp_path / "j", begin(topic="orders"), end(0), begin(topic="payments"), end(0))
    text = complaint(audit("--acks", path))
    assert text == (
        "tidelog audit: the journals are about orders, payments: say which with --topic"
    )
    text = complaint(audit("--acks", path, "--topic", "other"))
    assert text == "tidelog audit: the journals are about orders, payments, not about other"


def test_without_spark_it_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find_spec = importlib.util.find_spec

    def without_pyspark(name: str, package: str | None = None) -> ModuleSpec | None:
        return None if name == "pyspark" else find_spec(name, package)

    monkeypatch.setattr(importlib.util, "find_spec", without_pyspark)
    text = complaint(audit("--acks", write(tmp_path / "j", begin(), end(0))))
    assert text == "tidelog audit: tidelog audit needs Spark: pip install 'tidelog[spark]'"


def test_without_java_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_java() -> Path:
        raise JavaMissing("Spark needs Java 17 or newer (there is none)")

    monkeypatch.setattr(session, "ensure_java", no_java)
    journal = write(tmp_path / "j", begin(), end(0))
    text = complaint(audit("--acks", journal, "--segments", tmp_path))
    assert text == "tidelog audit: Spark needs Java 17 or newer (there is none)"


def test_brokers_that_are_not_there_are_told_before_spark_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_early(**settings: object) -> None:
        raise AssertionError("Spark was started")

    monkeypatch.setattr(launcher, "spark_session", too_early)
    journal = write(tmp_path / "j", begin(), end(0))
    address = f"127.0.0.1:{free_port()}"
    text = complaint(audit("--acks", journal, "--bootstrap", address))
    assert text == f"tidelog audit: no broker can be reached: {address} (connection refused)"


def test_a_usage_that_is_wrong(tmp_path: Path) -> None:
    path = write(tmp_path / "j", begin(), end(0))
    assert audit().exit_code == NOT_JUDGED
    assert "--conf" in complaint(audit("--acks", path, "--conf", "nonsense"))


def report(tmp_path: Path, **more: object) -> AuditReport:
    journal = write(tmp_path / "j", begin(acks="1"), entry(0), entry(1), end(2))
    finding = {
        **dict.fromkeys(COLUMNS),
        "finding": "lost",
        "partition": 0,
        "offset": 1,
        "replicas": [2],
        "key": bytearray(b"\xff"),
        "answered": "ok",
        "run": "r1",
        "number": 1,
        "line": 3,
        "evidence": "acknowledged at offset 1 (acks=1), but the log ends at 1",
    }
    facts = AuditedTopic(
        topic="orders",
        topic_id="id",
        is_compacted=False,
        partitions={
            0: AuditedPartition(
                partition=0,
                log_start_offset=0,
                end_offset=1,
                log_end_offset=1,
                high_watermark=1,
                read_from="a test",
            )
        },
    )
    given: dict[str, object] = {
        "findings": {"lost": 1},
        "first": (finding,),
        "counts": {("kept", "1"): 1, ("lost", "1"): 1, ("unexpected", None): 4_000},
        "notes": ("mind the gap",),
        **more,
    }
    runs = tuple(index_journals([journal]))
    counts: dict[str, Any] = {"outcomes": 2, "held": 4_001, **given}
    return AuditReport(facts=facts, runs=runs, **counts)


def printed(given: AuditReport) -> str:
    out = io.StringIO()
    print_report(given, Console(file=out, width=160, highlight=False))
    return out.getvalue()


def test_people_read_counts_findings_and_the_verdict_last(tmp_path: Path) -> None:
    text = printed(report(tmp_path))
    lines = [line.split() for line in text.splitlines()]
    assert "orders: 2 outcomes in 1 run; the topic holds 4,001 records in 1 partition" in text
    assert ["class", "acks=1", "no", "journal"] in lines
    assert ["kept", "1", "-", "acknowledged,", "and", "there"] in lines
    assert ["unexpected", "-", "4,000", "no", "journal", "knows", "of", "it"] in lines
    assert "orders-0 @ 1" in text and "r1 number 1 (line 3)" in text and "log ends at 1" in text
    assert "note: mind the gap" in text
    assert text.splitlines()[-1] == "findings: 1 lost"


def test_a_clean_report_says_so(tmp_path: Path) -> None:
    published = PublishedCounts(records=9, sources=9, unnamed=0, waiting=3, filtered=0)
    clean = report(tmp_path, findings={}, first=(), published=published)
    text = printed(clean)
    assert "published: 9 records of 9 source records; 3 wait" in text
    assert text.splitlines()[-1] == "no finding: nothing that was acknowledged is lost"


def test_programs_read_one_document(tmp_path: Path) -> None:
    document = report(tmp_path).as_json()
    assert document["classes"] == {
        "kept": {"1": 1},
        "lost": {"1": 1},
        "unexpected": {"none": 4_000},
    }
    assert document["findings"] == {"lost": 1} and document["findings_total"] == 1
    assert document["first_findings"][0]["key"] == {"base64": "/w=="}
    assert document["runs"][0]["acks"] == "1" and document["partitions"][0]["end_offset"] == 1
