"""What a query reads and calls is seen without Spark; what Spark would accept is never refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.spark.pipeline.file.sql_shape import query_shape
from tidelog.spark.pipeline.file.sql_tokens import BadSql, tokens_of

SQL = "SELECT FROM WITH AS JOIN ( ) , a b . ; 'x' ` \" /* */ -- \n GROUP BY OVER LATERAL VIEW |>"


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT * FROM orders", ["orders"]),
        (
            "select a from Orders o where b in (select c from `other view`)",
            ["Orders", "other view"],
        ),
        ("SELECT * FROM a, b AS x, c", ["a", "b", "c"]),
        ("SELECT * FROM a JOIN b ON a.x = b.x LEFT JOIN c USING (x, y)", ["a", "b", "c"]),
        ("SELECT * FROM (a JOIN b ON a.x = b.x) JOIN c", ["a", "b", "c"]),
        ("SELECT * FROM (SELECT * FROM (SELECT 1 FROM a)) t", ["a"]),
        ("(SELECT 1 FROM a) UNION ALL (SELECT 2 FROM b)", ["a", "b"]),
        ("((SELECT 1 FROM a) UNION (SELECT 2 FROM b))", ["a", "b"]),
        (
            "WITH x AS (SELECT * FROM a), y (k, v) AS (SELECT * FROM x) SELECT * FROM y, b",
            ["a", "b"],
        ),
        ("WITH RECURSIVE x AS (SELECT 1 FROM a) SELECT * FROM X", ["a"]),
        (
            "SELECT extract(YEAR FROM t), trim(BOTH 'x' FROM s), substring(s FROM 1 FOR 2) FROM a",
            ["a"],
        ),
        ("SELECT a IS DISTINCT FROM b, c IS NOT DISTINCT FROM d FROM e", ["e"]),
        ("SELECT 'FROM no' AS x, \"FROM no\" FROM a -- FROM b\n/* FROM c /* deep */ */", ["a"]),
        ("SELECT r'\\' FROM a WHERE x = 'it\\'s FROM'", ["a"]),
        ("SELECT k FROM a LATERAL VIEW explode(m) t AS k, v", ["a"]),
        ("SELECT * FROM a, LATERAL (SELECT * FROM b), LATERAL explode(a.x)", ["a", "b"]),
        ("SELECT * FROM range(10), a", ["a"]),
        ("SELECT * FROM VALUES (1, 2), (3, 4) AS t(x, y)", []),
        ("FROM a SELECT x, y WHERE z", ["a"]),
        ("FROM a |> WHERE x |> JOIN b USING (x)", ["a", "b"]),
        ("TABLE a", ["a"]),
        ("SELECT * FROM a;", ["a"]),
        ("SELECT 1", []),
        ("SELECT x[0], m['k'] FROM a GROUP BY GROUPING SETS ((x), (y))", ["a"]),
        ("SELECT CASE WHEN EXISTS (SELECT 1 FROM b) THEN 1 END FROM a", ["b", "a"]),
    ],
)
def test_relations_are_found(sql: str, reads: list[str]) -> None:
    assert [read.parts[0] for read in query_shape(sql).reads] == reads


def test_a_relation_of_a_catalog_or_a_file_has_several_parts() -> None:
    (read,) = query_shape("SELECT * FROM parquet.`/data/x` AS t").reads
    assert read.parts == ("parquet", "/data/x")


def test_a_relation_knows_its_line() -> None:
    first, second = query_shape("SELECT *\nFROM a\nJOIN\n  b").reads
    assert (first.line, second.line) == (1, 3)


@pytest.mark.parametrize(
    ("sql", "line", "message"),
    [
        ("", 0, "is empty"),
        ("-- nothing", 0, "is empty"),
        (
            "SELEC * FROM a",
            0,
            "begins with 'SELEC'; expected SELECT or WITH; did you mean 'SELECT'?",
        ),
        ("INSERT INTO x SELECT 1", 0, "begins with 'INSERT'"),
        ("SELECT 1; SELECT 2", 0, "more than one statement"),
        ("SELECT (1", 0, "the '(' here is never closed"),
        ("SELECT\n(1 + [2)", 1, "the ')' here closes nothing"),
        ("SELECT 1)", 0, "the ')' here closes nothing"),
        ("SELECT 'x\nFROM a", 0, "the string that begins here with ' is never closed"),
        ("SELECT\n`x FROM a", 1, "the name that begins here with ` is never closed"),
        ("SELECT 1 /* x", 0, "the comment that begins here"),
        ("SELECT a, FROM b", 0, "a column is missing between ',' and FROM"),
        ("SELECT FROM b", 0, "SELECT names no column"),
        ("SELECT a FROM b WHERE", 0, "ends with 'WHERE'"),
    ],
)
def test_what_cannot_be_a_query_is_told(sql: str, line: int, message: str) -> None:
    with pytest.raises(BadSql) as caught:
        query_shape(sql)
    assert caught.value.line == line
    assert message in str(caught.value)


def test_calls_are_noted_with_and_without_brackets() -> None:
    shape = query_shape(
        "SELECT rand(), t.uuid, current_timestamp, sum(x), unix_timestamp(y) FROM t"
    )
    calls = {call.name: call.has_arguments for call in shape.calls}
    assert calls == {
        "rand": False,
        "current_timestamp": False,
        "sum": True,
        "unix_timestamp": True,
    }


@pytest.mark.parametrize(
    ("sql", "grouped", "ordered", "windowed"),
    [
        ("SELECT a FROM s GROUP BY a", True, False, False),
        ("SELECT a FROM s ORDER BY a", False, True, False),
        ("SELECT row_number() OVER (PARTITION BY a ORDER BY b) FROM s", False, False, True),
        ("SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY a) FROM s", False, False, False),
        ("SELECT * FROM s JOIN (SELECT a FROM f.x GROUP BY a ORDER BY a) t", False, False, False),
        ("WITH q AS (SELECT a FROM f.x GROUP BY a) SELECT * FROM s JOIN q", False, False, False),
        ("WITH q AS (SELECT a FROM s) SELECT a FROM q GROUP BY a", True, False, False),
        ("SELECT * FROM (SELECT a FROM s GROUP BY a)", True, False, False),
    ],
)
def test_only_what_reads_a_stream_counts(
    sql: str, grouped: bool, ordered: bool, windowed: bool
) -> None:
    frames = query_shape(sql).streams(lambda name: name == "s")
    assert any(each.grouped_at is not None for each in frames) is grouped
    assert any(each.ordered_at is not None for each in frames) is ordered
    assert any(each.windowed_at is not None for each in frames) is windowed


def test_tokens_keep_their_lines() -> None:
    tokens = [(token.kind, token.text, token.line) for token in tokens_of("a 'x\ny'\n`b``c` 1.5e3")]
    assert tokens == [
        ("word", "a", 0),
        ("text", "'x\ny'", 0),
        ("name", "b`c", 2),
        ("number", "1.5e3", 2),
    ]


@given(st.lists(st.sampled_from(SQL.split(" ")), max_size=25))
def test_any_pile_of_sql_is_a_shape_or_bad(pieces: list[str]) -> None:
    try:
        shape = query_shape(" ".join(pieces))
    except BadSql:
        return
    assert len(shape.streams(lambda name: True)) <= 1 + pieces.count("(")
