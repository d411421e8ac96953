"""`tidelog pipeline check --with-spark`: what only Spark knows has its key and line, too; and what
is reported without Spark is what Spark reports."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidelog
from tests.spark.orders import pipeline_file
from tests.unit.spark.pipeline.good_file import GOOD, checked
from tidelog.spark import pipeline
from tidelog.spark.pipeline.file.check_columns import select_list
from tidelog.spark.pipeline.job.events import RunEnding
from tidelog.spark.pipeline.job.spark_analysis import analyse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.long
TOPIC = 'topic = "out"\nid = "out"\n'
COLUMNS = "1 AS a, 2 AS b, 4 AS `a b`, array(1) AS s, struct(1 AS x) AS r, now() AS t"
QUERIES = [
    "SELECT a, b FROM v",
    "select distinct a from v as x where a > 0",
    "SELECT ALL `a b`, v.b, r.x, v.r.x AS y FROM v",
    "SELECT *, concat(a, (b)) AS c FROM v",
    "SELECT *, 1 AS c, * FROM v o WHERE a IN (SELECT a FROM w)",
    "SELECT CASE WHEN a = 1 THEN 1 END AS c, CAST(a AS STRING) AS d FROM v",
    "SELECT s[0] AS c, extract(year FROM t) AS y FROM v ORDER BY 1 LIMIT 1",
    "SELECT window.start AS m, sum(a) AS b FROM v GROUP BY window(t, '1 minute')",
    "SELECT d AS e FROM (SELECT b AS d FROM v) AS q",
    "SELECT d, b FROM v, w",
    "SELECT c FROM v AS x(c, d, e, f, g, h)",
    "SELECT (SELECT max(a) FROM w) AS m, interval '1' day AS i FROM v HAVING true",
    "SELECT a AS `A.b`, -a AS n, a::string AS z FROM v",
]
CASES = [
    ("WHERE amount > 0", "WHERE amunt > 0", ":11: steps.valid.sql: [UNRESOLVED_COLUMN"),
    ("SELECT *", "SELECT *, nothing(1) AS a", ":11: steps.valid.sql: [UNRESOLVED_ROUTINE"),
    ("SELECT *", "SELECT x.* EXCEPT (ordered_at)", ":16: steps.valid.watermark: "),
    ('table = "out/valid"', 'table = "o"\npartition_by = ["window.x"]', ":20: sinks.valid.partiti"),
    (
        'table = "out/valid"',
        TOPIC + 'key = "window.x"',
        ":21: sinks.valid.key: [UNRESOLVED_COLUMN",
    ),
    (
        'FROM orders\nWHERE amount > 0\n"""',
        'FROM orders UNION ALL SELECT * FROM orders\n"""',
        None,
    ),
]


@pytest.mark.parametrize(("old", "new", "complaint"), CASES)
def test_what_only_spark_knows_has_its_key_and_line(
    spark: SparkSession, old: str, new: str, complaint: str | None
) -> None:
    assert GOOD.count(old) == 1
    text = GOOD.replace(old, new).replace("FROM orders\n", "FROM orders x\n")
    plain = checked(text)
    assert plain.errors == [], "nothing of this can be seen without Spark"
    lines = [each.as_line("p.toml").removeprefix("p.toml") for each in analyse(plain, spark).errors]
    assert [each[: len(complaint or "")] for each in lines] == ([complaint] if complaint else [])
    assert not any("\n" in each for each in lines)


def test_a_raw_topic_needs_values(spark: SparkSession) -> None:
    text = GOOD.replace('table = "out/valid"', TOPIC + 'format = "raw"')
    text = text.replace("SELECT *", "SELECT order_id, max(ordered_at), ordered_at")
    text = text.replace("WHERE amount > 0", "GROUP BY order_id, ordered_at")
    text = text.replace("[sinks.valid]", '[sinks.valid]\nmode = "update"')
    (error,) = analyse(checked(text), spark).errors
    assert error.as_line("p.toml").startswith(
        "p.toml:22: sinks.valid.format: a sink needs a column value: this frame has order_id,"
    )


@pytest.mark.parametrize("sql", QUERIES)
def test_columns_of_plain_queries_are_those_that_spark_finds(spark: SparkSession, sql: str) -> None:
    own = spark.newSession()
    own.sql(f"SELECT {COLUMNS}").createTempView("v")
    own.sql("SELECT 1 AS a, 2 AS d").createTempView("w")
    plain = select_list(sql)
    assert plain is not None
    stars = own.table("v").columns
    expected = [each for name in plain.names for each in (stars if name is None else [name])]
    assert own.sql(sql).columns == expected


def test_a_topic_that_is_not_there_ends_the_run_in_one_line(
    spark: SparkSession, tidelog3: tidelog.Cluster, tmp_path: Path
) -> None:
    file = pipeline_file(tmp_path, "never-made")
    outcome = pipeline.run(
        file, bootstrap=tidelog3.bootstrap_servers, available_now=True, spark=spark
    )
    assert outcome.ending is RunEnding.FAILED
    assert outcome.reason == (
        f"sources.orders: there is no topic never-made at {tidelog3.bootstrap_servers};"
        " `tidelog topic create never-made` makes one"
    )
