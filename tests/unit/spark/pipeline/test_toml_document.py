"""A file is read statement by statement: every value has its line, no mistake hides another."""

from __future__ import annotations

import pytest

from tidelog.spark.pipeline.file.toml_document import document_of, read_document

WHOLE = '''\
name = "orders"          # a comment with = and "quotes"
trigger = "5s"

[sources.orders]
topic = "orders"
schema = """
    order_id STRING,
    amount INT
"""
watermark = { column = "ordered_at", delay = "1 minute" }

[steps.valid]
deduplicate = [
    "order_id",
    "country",
]
sql = "SELECT 1"
[steps.valid.watermark]
column = "x"
[steps.empty]
'''


def test_every_value_knows_the_line_of_its_key() -> None:
    document, errors = read_document(WHOLE)
    assert errors == []
    lines = {".".join(path): value.line for path, value in document.values.items()}
    assert lines == {
        "name": 1,
        "trigger": 2,
        "sources.orders.topic": 5,
        "sources.orders.schema": 6,
        "sources.orders.watermark.column": 10,
        "sources.orders.watermark.delay": 10,
        "steps.valid.deduplicate": 13,
        "steps.valid.sql": 17,
        "steps.valid.watermark.column": 19,
    }
    assert document.values["steps", "valid", "deduplicate"].value == ["order_id", "country"]


def test_a_text_of_several_lines_begins_after_its_quotes() -> None:
    document, _ = read_document(WHOLE)
    assert document.values["sources", "orders", "schema"].text_line == 7
    assert document.values["steps", "valid", "sql"].text_line == 17


def test_a_key_that_is_missing_is_looked_for_where_its_table_is() -> None:
    document, _ = read_document(WHOLE)
    assert document.line_of(("sources", "orders", "pattern")) == 4
    assert document.line_of(("steps", "empty", "sql")) == 20
    assert document.line_of(("checkpoint",)) == 1


def test_names_come_in_the_order_of_the_file() -> None:
    text = "[steps.b]\nsql='x'\n[steps]\na.sql = 'y'\n[steps.c.watermark]\n"
    document, errors = read_document(text)
    assert errors == []
    assert document.names_below("steps") == ["b", "a", "c"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1\nb = = 2\nc = 3\nd 4\n", [(2, "is not TOML"), (4, "is not TOML")]),
        ('a = "x\nb = 2\n', [(1, "is not TOML")]),
        ("a = 1\na = 2\n", [(2, "was already set at line 1")]),
        ("[steps.x]\nsql = 'a'\n[steps.x]\nsql = 'b'\n", [(3, "line 1"), (4, "line 2")]),
        ("[[sources]]\ntopic = 'a'\n", [(1, "lists of tables")]),
        ('trigger = "5s"\n[trigger.x]\n', [(2, "trigger is a value, at line 1")]),
    ],
)
def test_each_mistake_is_told_with_its_line(text: str, expected: list[tuple[int, str]]) -> None:
    _, errors = read_document(text)
    assert [each.line for each in errors] == [line for line, _ in expected]
    for error, (_, part) in zip(errors, expected, strict=True):
        assert part in error.text


def test_a_text_that_never_ends_hides_only_its_own_table() -> None:
    text = '[steps.a]\nsql = """\nSELECT\n  x = = 1\n[sinks.b]\ntable = "t"\n'
    document, errors = read_document(text)
    assert [(each.line, each.text) for each in errors] == [(2, "is not TOML: Unterminated string")]
    assert document.values["sinks", "b", "table"].line == 6


def test_a_mapping_is_the_same_without_lines() -> None:
    plan = {"name": "x", "steps": {"b": {"sql": "1"}, "a": {"sql": "2"}}, "sinks": {"e": {}}}
    document = document_of(plan)
    assert document.values["steps", "b", "sql"].value == "1"
    assert document.names_below("steps") == ["b", "a"]
    assert document.names_below("sinks") == ["e"]
    assert document.line_of(("steps", "b", "sql")) is None
