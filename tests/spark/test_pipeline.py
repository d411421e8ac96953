"""A pipeline from one file: every record is in a table once or in the dead letters, and counted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidelog
from tests.spark.orders import Orders, check_tables, pipeline_file, rows_of
from tests.spark.topics import NewTopic
from tidelog.spark import pipeline
from tidelog.spark.pipeline.file.schema_ddl import read_ddl
from tidelog.spark.pipeline.job.dead_letters import (
    PARSED,
    REASON,
    column_expressions,
    parsed_expression,
    reason_expression,
)
from tidelog.spark.pipeline.job.events import RunEnding, RunOutcome

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SCHEMA = """
    id STRING NOT NULL, n INT, d DECIMAL(5, 2), t TIMESTAMP, a ARRAY<INT>, s STRUCT<x: INT>,
    m MAP<STRING, INT>
"""
NOT_ONE = "the value is not one JSON document"
NO_OBJECT = "the value is not a JSON object"
NO_FIT = "the value does not fit the schema: "
DEAD_LETTERS: list[tuple[bytes | None, str | None]] = [
    (b'{"id": "x"}', None),
    (b' {"id": "x", "n": null, "more": [1]} \n', None),
    ('{"id": "ü€😀"}'.encode(), None),
    (None, "the value is null"),
    (b"", NOT_ONE),
    (b" ", NOT_ONE),
    (b"\x00\x01", NOT_ONE),
    (b'{"id": "x"', NOT_ONE),
    (b'{"id": "x"}{"id": "y"}', NOT_ONE),
    (b'{"id": "x"}, {"id": "y"}', NOT_ONE),
    (b'{"id": "x"}}', NOT_ONE),
    (b'{"id": "x"}]', NOT_ONE),
    (b'{"id": "x"}]}', NOT_ONE),
    (b'{"id": "x"} and more', NOT_ONE),
    (b'{"id": "a\nb"}', NOT_ONE),
    (b"null", NO_OBJECT),
    (b"5", NO_OBJECT),
    (b'[{"id": "x"}]', NO_OBJECT),
    (b'{"id": "\xff"}', "the value is not UTF-8"),
    (b"{}", "column id is missing or null"),
    (b'{"id": null, "n": 1}', "column id is missing or null"),
    (b'{"id": "x", "n": "5"}', NO_FIT + "n is not INT"),
    (b'{"id": "x", "n": 3000000000}', NO_FIT + "n is not INT"),
    (b'{"id": "x", "n": 1.5, "t": "soon"}', NO_FIT + "n is not INT, t is not TIMESTAMP"),
    (b'{"id": "x", "d": 123456.7}', NO_FIT + "d is not DECIMAL(5, 2)"),
    (b'{"id": "x", "a": [1, "y"]}', NO_FIT + "a is not ARRAY<INT>"),
    (b'{"id": "x", "s": {"x": "y"}}', NO_FIT + "s is not STRUCT<`x`: INT>"),
    (b'{"id": "x", "m": {"k": "v"}}', NO_FIT + "m is not MAP<STRING, INT>"),
]


def test_what_is_not_one_object_of_the_schema_is_dead_with_its_reason(spark: SparkSession) -> None:
    columns, _ = read_ddl(SCHEMA)
    values = spark.createDataFrame(
        [(number, value) for number, (value, _) in enumerate(DEAD_LETTERS)],
        "number INT, value BINARY",
    )
    parsed = values.selectExpr("*", f"{parsed_expression(columns)} AS {PARSED}")
    judged = parsed.selectExpr("*", f"{reason_expression(columns)} AS {REASON}")
    found = judged.selectExpr("number", REASON, *column_expressions(columns)).collect()
    reasons = {row["number"]: row[REASON] for row in found}
    assert [reasons[number] for number in range(len(DEAD_LETTERS))] == [
        reason for _, reason in DEAD_LETTERS
    ]
    assert {row["id"] for row in found if row[REASON] is None} == {"x", "ü€😀"}


def run(file: Path, cluster: tidelog.Cluster, spark: SparkSession) -> RunOutcome:
    outcome = pipeline.run(
        file, bootstrap=cluster.bootstrap_servers, available_now=True, spark=spark
    )
    assert outcome.ending is RunEnding.FINISHED, outcome.reason
    return outcome


def test_every_order_is_kept_once_and_every_bad_record_is_a_dead_letter(
    spark: SparkSession, tidelog3: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    """In two runs, the second of which begins where the first one ended."""
    orders = Orders(tidelog3.bootstrap_servers, new_topic(tidelog3, partitions=2))
    file = pipeline_file(tmp_path, orders.topic)
    orders.write(range(300))

    first = run(file, tidelog3, spark)
    check_tables(tmp_path, orders)
    account = first.accounts["valid_orders"]
    assert account.sources["orders"].read == orders.sent
    assert account.sources["orders"].dead == len(orders.dead)
    assert (account.rows, account.duplicates, account.late) == (300, orders.repeated, 0)
    assert first.accounts["dead_letters"].rows == len(orders.dead)
    assert all(each.imbalance() is None for each in first.accounts.values())

    orders.write(range(280, 1_500))  # the first twenty once more
    second = run(file, tidelog3, spark)
    check_tables(tmp_path, orders)
    read = [each.accounts["valid_orders"].sources["orders"].read for each in (first, second)]
    assert sum(read) == orders.sent
    minutes = {row["minute"] for row in rows_of(tmp_path / "orders-data" / "revenue")}
    assert len(minutes) >= 14, "those that the watermark of ten minutes has passed"


@pytest.mark.long
def test_a_batch_that_was_published_and_not_noted_is_not_published_again(
    spark: SparkSession, tidelog3: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    """The driver died between the table's commit and Spark's; the state goes on all the same."""
    orders = Orders(tidelog3.bootstrap_servers, new_topic(tidelog3))
    file = pipeline_file(tmp_path, orders.topic)
    orders.write(range(100))
    run(file, tidelog3, spark)

    for sink in ("valid_orders", "dead_letters"):
        commits = tmp_path / "orders-data" / "checkpoint" / "sinks" / sink / "commits"
        latest = max(int(path.name) for path in commits.iterdir() if path.name.isdecimal())
        (commits / str(latest)).unlink()
        (commits / f".{latest}.crc").unlink(missing_ok=True)
    orders.write(range(90, 200))
    run(file, tidelog3, spark)
    check_tables(tmp_path, orders)


@pytest.mark.long
def test_a_table_is_not_given_to_another_checkpoint(
    spark: SparkSession, tidelog3: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    orders = Orders(tidelog3.bootstrap_servers, new_topic(tidelog3))
    file = pipeline_file(tmp_path, orders.topic)
    orders.write(range(50))
    run(file, tidelog3, spark)

    text = file.read_text()
    file.write_text(text.replace("orders-data/checkpoint", "orders-data/another"))
    outcome = pipeline.run(
        file, bootstrap=tidelog3.bootstrap_servers, available_now=True, spark=spark
    )
    assert outcome.ending is RunEnding.FAILED
    assert outcome.reason is not None and "has batch 0 of another query" in outcome.reason
    assert "\n" not in outcome.reason
    check_tables(tmp_path, orders)


@pytest.mark.long
def test_steps_may_be_functions_and_sources_raw(
    spark: SparkSession, tidelog3: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    orders = Orders(tidelog3.bootstrap_servers, new_topic(tidelog3))
    orders.write(range(50))
    plan = {
        "checkpoint": str(tmp_path / "state"),
        "trigger": "available-now",
        "sources": {"records": {"topic": orders.topic}},
        "steps": {"long_ones": {"function": lambda views: views["records"].filter("value <> ''")}},
        "sinks": {"long_ones": {"table": str(tmp_path / "out"), "partition_by": ["partition"]}},
    }
    outcome = pipeline.run(plan, bootstrap=tidelog3.bootstrap_servers, spark=spark)
    assert outcome.ending is RunEnding.FINISHED, outcome.reason
    empty = sum(1 for _, _, value in orders.dead if not value)
    rows = rows_of(tmp_path / "out")
    assert len(rows) == orders.sent - empty
    assert {(row["batch_id"], row["partition"]) for row in rows} == {(0, 0)}


@pytest.mark.long
def test_rows_that_come_too_late_are_counted(
    spark: SparkSession, tidelog3: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    orders = Orders(tidelog3.bootstrap_servers, new_topic(tidelog3))
    file = pipeline_file(tmp_path, orders.topic)
    orders.write(range(5_000, 5_010))
    run(file, tidelog3, spark)
    orders.write(range(1, 8))
    outcome = run(file, tidelog3, spark)
    account = outcome.accounts["valid_orders"]
    assert (account.rows, account.late, account.imbalance()) == (0, 7, None)


@pytest.mark.long
def test_a_bad_record_may_end_the_run_instead(
    spark: SparkSession, tidelog3: tidelog.Cluster, new_topic: NewTopic, tmp_path: Path
) -> None:
    orders = Orders(tidelog3.bootstrap_servers, new_topic(tidelog3))
    file = pipeline_file(tmp_path, orders.topic, source='bad_records = "fail"')
    orders.write(range(1, 26))
    outcome = pipeline.run(
        file, bootstrap=tidelog3.bootstrap_servers, available_now=True, spark=spark
    )
    assert outcome.ending is RunEnding.FAILED
    assert outcome.reason is not None
    (partition, offset, _) = next(iter(orders.dead))
    assert f"bad record at {orders.topic}-{partition} offset {offset}: " in outcome.reason
