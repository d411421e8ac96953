"""Columns that are not there are found without Spark, wherever that can be done for certain."""

from __future__ import annotations

import pytest

from tests.unit.spark.pipeline.good_file import GOOD, checked
from tidelog.spark.pipeline.file.check_columns import select_list

PLAIN: list[tuple[str, tuple[str | None, ...], str | None]] = [
    ("SELECT a, b FROM v", ("a", "b"), "v"),
    ("select distinct a from v as x where a > 0", ("a",), "v"),
    ("SELECT ALL `a b`, x.c FROM v x GROUP BY 1", ("a b", "c"), "v"),
    ("SELECT *, f(a, (b)) AS c FROM v", (None, "c"), "v"),
    ("SELECT CASE WHEN a THEN 1 END AS c, CAST(a AS INT) AS d FROM v;", ("c", "d"), "v"),
    ("SELECT s[0] AS a, extract(year FROM t) AS y FROM v HAVING true", ("a", "y"), "v"),
    ("SELECT window.start AS m, sum(a) AS b FROM v GROUP BY window(t, '1 m')", ("m", "b"), "v"),
    ("SELECT a FROM (SELECT b AS a FROM v)", ("a",), None),
    ("SELECT a FROM v, w", ("a",), None),
    ("SELECT a FROM v AS x(b)", ("a",), None),
    ("SELECT a FROM parquet.`/p`", ("a",), None),
]
NOT_PLAIN = [
    "SELECT count(a) FROM v",
    "SELECT a b FROM v",
    "SELECT a + 1 FROM v",
    "SELECT 1 FROM v",
    "SELECT current_date FROM v",
    "SELECT x.* FROM v x",
    "SELECT * EXCEPT (a) FROM v",
    "SELECT explode(m) AS (k, w) FROM v",
    "SELECT a IS DISTINCT FROM b AS c FROM v",
    "SELECT a FROM v UNION ALL SELECT b FROM w",
    "SELECT * FROM v JOIN w ON a = b",
    "SELECT * FROM v LATERAL VIEW explode(a) t AS b",
    "SELECT * FROM v PIVOT (sum(a) FOR b IN (1))",
    "SELECT TRANSFORM(a) USING 'cat' AS b FROM v",
    "WITH w AS (SELECT a FROM v) SELECT a FROM w",
    "FROM v SELECT a",
    "FROM v |> SELECT a",
    "TABLE v",
    "VALUES (1)",
    "(SELECT a FROM v)",
]


@pytest.mark.parametrize(("sql", "names", "relation"), PLAIN)
def test_a_plain_query_names_its_columns(
    sql: str, names: tuple[str | None, ...], relation: str | None
) -> None:
    found = select_list(sql)
    assert found is not None
    assert (found.names, found.relation) == (names, relation)


@pytest.mark.parametrize("sql", NOT_PLAIN)
def test_of_others_nothing_is_said(sql: str) -> None:
    assert select_list(sql) is None


TOPIC = 'table = "out/valid"', 'topic = "out"\nid = "out"\n'
NONE = "there is no column 'ordered'; did you mean 'ordered_at'?"
CASES = [
    ([('"ordered_at"', '"ordered"')], f":16: steps.valid.watermark.column: {NONE}"),
    (
        [('["order_id"]', '["order_id", "ordered"]')],
        f":17: steps.valid.deduplicate: {NONE}",
    ),
    (
        [("SELECT *", "SELECT order_id, ordered_at AS t")],
        ":16: steps.valid.watermark.column: there is no column 'ordered_at'; did you mean",
    ),
    (
        [('table = "out/valid"', 'table = "out/valid"\npartition_by = ["_topic", "ordered"]')],
        f":20: sinks.valid.partition_by: {NONE}",
    ),
    ([(TOPIC[0], TOPIC[1] + 'key = "ordered"')], f":21: sinks.valid.key: {NONE}"),
    (
        [(TOPIC[0], TOPIC[1] + 'format = "raw"')],
        ":21: sinks.valid.format: raw rows need a column 'value'; valid has none",
    ),
]


@pytest.mark.parametrize(("changes", "expected"), CASES)
def test_a_column_that_is_not_there_is_named(changes: list[tuple[str, str]], expected: str) -> None:
    text = GOOD
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    lines = [each.as_line("p.toml").removeprefix("p.toml") for each in checked(text).errors]
    assert len(lines) == 1 and lines[0].startswith(expected), lines


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("SELECT *", "SELECT order_id, max(ordered_at)"),
        ("SELECT *", "SELECT order_id, ORDERED_AT"),
        ("FROM orders", "FROM orders JOIN parquet.`/other` USING (order_id)"),
        ('["order_id"]', '["order_id", "_offset"]'),
        ('column = "ordered_at"', 'column = "window.end"'),
        ('column = "ordered_at"', 'column = "Ordered_At"'),
    ],
)
def test_what_is_not_known_for_certain_is_left_to_spark(old: str, new: str) -> None:
    assert checked(GOOD.replace(old, new)).errors == []


def test_columns_are_followed_from_step_to_step() -> None:
    more = '[steps.more]\nsql = "SELECT *, amount AS price FROM valid"\ndeduplicate = ["prize"]\n'
    more += '[sinks.more]\ntable = "out/more"\n'
    (error,) = checked(GOOD + more).errors
    assert error.as_line("p.toml") == (
        "p.toml:24: steps.more.deduplicate: there is no column 'prize'; did you mean 'price'?"
    )
