"""Whatever stands in a file, checking it ends with complaints, never with an exception."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.unit.spark.pipeline.good_file import GOOD, checked
from tidelog.spark.pipeline.file.schema_ddl import read_ddl
from tidelog.spark.pipeline.file.sql_shape import query_shape
from tidelog.spark.pipeline.file.sql_tokens import BadSql

SQL = "SELECT FROM WITH AS JOIN ( ) , a b . ; 'x' ` \" /* */ -- \n GROUP BY OVER LATERAL VIEW |>"
DDL = "a STRING INT ARRAY MAP STRUCT DECIMAL < > ( ) , : 5 NOT NULL `b`"


@given(st.data())
def test_a_good_file_with_something_cut_out_is_still_judged(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(GOOD)))
    end = data.draw(st.integers(start, min(len(GOOD), start + 80)))
    pasted = data.draw(st.text(alphabet="[]{}=\"'\n ax.,#5", max_size=6))
    found = checked(GOOD[:start] + pasted + GOOD[end:])
    assert (found.plan is None) == bool(found.errors)


@given(st.text(max_size=60))
def test_any_text_is_judged(text: str) -> None:
    assert checked(text).plan is None


@given(st.lists(st.sampled_from(SQL.split(" ")), max_size=25))
def test_any_pile_of_sql_is_a_shape_or_bad(pieces: list[str]) -> None:
    try:
        shape = query_shape(" ".join(pieces))
    except BadSql:
        return
    assert len(shape.streams(lambda name: True)) <= 1 + pieces.count("(")


@given(st.lists(st.sampled_from(DDL.split()), max_size=15))
def test_any_pile_of_ddl_is_columns_or_mistakes(pieces: list[str]) -> None:
    columns, mistakes = read_ddl(" ".join(pieces))
    assert columns or mistakes
