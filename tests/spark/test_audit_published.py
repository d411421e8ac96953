"""What a sink published, held against its source: twice, not at all, or of nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tidelog
from tests.spark.audit_writers import WITHIN_S, Writer
from tests.spark.topics import NewTopic
from tidelog.client.shells.blocking_clients import Producer
from tidelog.spark.audit.audit import audit
from tidelog.spark.audit.errors import AuditRefused
from tidelog.spark.audit.report import AuditReport
from tidelog.spark.audit.request import AuditRequest

RECORDS = 10


class Source:
    """A topic of ten records in each of two partitions, and the journal of who wrote them."""

    def __init__(self, cluster: tidelog.Cluster, topic: str, journal: Path) -> None:
        self.settings = {"bootstrap.servers": cluster.bootstrap_servers}
        self.topic = topic
        self.journal = journal
        with Writer(cluster.bootstrap_servers, journal, topic) as writer:
            for partition in (0, 1):
                writer.send_all(f"order {partition}", RECORDS, partition=partition)

    def audit(self, spark: SparkSession, **more: Any) -> AuditReport:
        return audit(spark, AuditRequest(journals=(self.journal,), settings=self.settings, **more))


@pytest.fixture
def source(tidelog3: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path) -> Source:
    return Source(tidelog3, new_topic(tidelog3, partitions=2), tmp_path / "acks.jsonl")


def every_record() -> list[tuple[int, int]]:
    return [(partition, offset) for partition in (0, 1) for offset in range(RECORDS)]


def table(spark: SparkSession, path: Path, rows: list[tuple[int, int]]) -> Path:
    frame = spark.createDataFrame(rows, "source_partition int, source_offset bigint")
    frame.selectExpr("'x' as amount", "*").write.parquet(str(path))
    return path


def found(report: AuditReport) -> list[tuple[str, int, int]]:
    return [(each["finding"], each["partition"], each["offset"]) for each in report.first]


@pytest.mark.long
def test_a_table_with_every_record_once(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    path = table(spark, tmp_path / "table", every_record())
    report = source.audit(spark, published_tables=(path,), is_strict=True)
    assert report.is_clean and report.published is not None
    assert (report.published.records, report.published.sources) == (20, 20)


@pytest.mark.long
def test_a_table_with_planted_mistakes(spark: SparkSession, source: Source, tmp_path: Path) -> None:
    """The end of a partition may still come, unless the sink is said to be finished."""
    rows = [each for each in every_record() if each not in ((0, 3), (1, 8), (1, 9))]
    path = table(spark, tmp_path / "table", [*rows, (1, 2), (0, 77), (5, 0)])
    report = source.audit(spark, published_tables=(path,))
    assert found(report) == [
        ("published from nothing", 0, 77),
        ("published from nothing", 5, 0),
        ("published twice", 1, 2),
        ("unpublished", 0, 3),
    ]
    assert report.published is not None and report.published.waiting == 2

    strict = source.audit(spark, published_tables=(path,), is_strict=True)
    assert strict.findings["unpublished"] == 3
    sieve = source.audit(spark, published_tables=(path,), may_filter=True)
    assert "unpublished" not in sieve.findings
    assert sieve.published is not None and sieve.published.filtered == 1


def test_a_topic_whose_records_name_their_source(
    spark: SparkSession, source: Source, tidelog3: tidelog.Cluster, new_topic: NewTopic
) -> None:
    """By a header, or in a value that is JSON; others are counted, those of other topics not."""
    out = new_topic(tidelog3, partitions=3)
    with Producer(source.settings) as producer:
        sent = [
            producer.send(
                out,
                b"anything",
                headers=[("tidelog-source", f"{source.topic}/0/{offset}".encode())],
            )
            for offset in (*range(RECORDS), 4)
        ]
        sent += [
            producer.send(out, f'{{"source_partition": 1, "source_offset": {offset}}}'.encode())
            for offset in range(RECORDS)
            if offset != 5
        ]
        sent.append(producer.send(out, b"whose?"))
        sent.append(producer.send(out, b"x", headers=[("tidelog-source", b"elsewhere/0/0")]))
        for each in sent:
            each.result(WITHIN_S)
    report = source.audit(spark, published=(out,))
    assert found(report) == [("published twice", 0, 4), ("unpublished", 1, 5)]
    assert f"{out}-" in report.first[0]["evidence"]
    assert report.published is not None and report.published.unnamed == 1
    assert any("1 published records do not say" in note for note in report.notes)


@pytest.mark.long
def test_tables_and_topics_that_say_nothing(
    spark: SparkSession, source: Source, tmp_path: Path
) -> None:
    spark.createDataFrame([(1,)], "amount int").write.parquet(str(tmp_path / "plain"))
    with pytest.raises(AuditRefused, match="has no column source_partition and no column source_"):
        source.audit(spark, published_tables=(tmp_path / "plain",))
    with pytest.raises(AuditRefused, match="there is no such directory"):
        source.audit(spark, published_tables=(tmp_path / "nothing",))
    (tmp_path / "empty").mkdir()
    with pytest.raises(AuditRefused, match="no Parquet table"):
        source.audit(spark, published_tables=(tmp_path / "empty",))
    with pytest.raises(AuditRefused, match="nothing that was published names a record of"):
        source.audit(spark, published=(source.topic,))
    with pytest.raises(AuditRefused, match="UNKNOWN_TOPIC_OR_PARTITION: there is no topic 'nope'"):
        source.audit(spark, published=("nope",))
