"""Schemas in Spark's DDL: understood column by column, and every mistake named."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.spark.pipeline.file.schema_ddl import SchemaColumn, read_ddl

DDL = "a STRING INT ARRAY MAP STRUCT DECIMAL < > ( ) , : 5 NOT NULL `b`"


def test_columns_have_names_types_and_may_be_required() -> None:
    columns, mistakes = read_ddl(
        "order_id STRING NOT NULL COMMENT 'it''s', amount: decimal(12,2), `odd name` Int"
    )
    assert mistakes == []
    assert columns == [
        SchemaColumn(name="order_id", type="STRING", is_required=True),
        SchemaColumn(name="amount", type="DECIMAL(12, 2)", is_required=False),
        SchemaColumn(name="odd name", type="INT", is_required=False),
    ]
    assert columns[2].quoted_name == "`odd name`"


@pytest.mark.parametrize(
    ("given", "understood"),
    [
        ("ARRAY<STRING>", "ARRAY<STRING>"),
        ("map<string,array<int>>", "MAP<STRING, ARRAY<INT>>"),
        ("struct<a: int, b: struct<c string>>", "STRUCT<`a`: INT, `b`: STRUCT<`c`: STRING>>"),
        ("decimal", "DECIMAL"),
        ("varchar(10)", "VARCHAR(10)"),
        ("timestamp_ntz", "TIMESTAMP_NTZ"),
        ("interval day to second", "INTERVAL DAY TO SECOND"),
        ("STRING COLLATE UTF8_LCASE", "STRING"),
    ],
)
def test_every_type_of_spark_is_known(given: str, understood: str) -> None:
    columns, mistakes = read_ddl(f"x {given}")
    assert (mistakes, [each.type for each in columns]) == ([], [understood])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("", 0, "is empty"),
        ("a", 0, "column 'a' has no type"),
        ("a STRNG", 0, "'STRNG' is not a Spark type; did you mean 'string'?"),
        ("a INT,\nb INT,\n", 1, "a column is missing"),
        ("a INT,, b INT", 0, "a column is missing"),
        ("a INT,\nA STRING", 1, "there are two columns 'A'"),
        ("a INT NOT", 0, "expected NULL after NOT"),
        ("a INT DEFAULT 5", 0, "'DEFAULT' is not understood after INT"),
        ("a ARRAY<INT", 0, "ARRAY needs '>'"),
        ("a MAP<INT>", 0, "MAP needs ',' here, not '>'"),
        ("a STRUCT<b INT NOT NULL>", 0, "NOT NULL is only checked for whole columns"),
        ("a VARCHAR", 0, "needs a length"),
        ("a DECIMAL(50, 2)", 0, "1 to 38 digits"),
        ("a DECIMAL(5, 6)", 0, "1 to 38 digits"),
        ("a DECIMAL(1, 2, 3)", 0, "does not take 3 numbers"),
        ("a DECIMAL(x)", 0, "'x' is not a number"),
        ("5 INT", 0, "expected a column's name, not '5'"),
        ("a INT; b INT", 0, "is not understood in a schema"),
    ],
)
def test_a_mistake_is_named_with_its_line(text: str, line: int, message: str) -> None:
    _, mistakes = read_ddl(text)
    assert len(mistakes) == 1
    assert mistakes[0].line == line
    assert message in mistakes[0].text


def test_one_mistake_does_not_hide_the_next() -> None:
    columns, mistakes = read_ddl("a STRNG,\nb INT,\nc DECIMAL(99)")
    assert [each.line for each in mistakes] == [0, 2]
    assert [each.name for each in columns] == ["b"]


@given(st.lists(st.sampled_from(DDL.split()), max_size=15))
def test_any_pile_of_ddl_is_columns_or_mistakes(pieces: list[str]) -> None:
    columns, mistakes = read_ddl(" ".join(pieces))
    assert columns or mistakes
