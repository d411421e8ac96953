"""JSON records into columns; what does not parse becomes a dead letter with its reason.

Spark's `from_json` is lenient in three ways that would drop data silently. So it does not parse the
value itself but `{"r": [VALUE], "e": true}`:

1. It stops after the first object: of `{"a": 1}{"a": 2}` the second would vanish. Here whatever
   follows must fit between the value and the end mark `e`, or the record is dead.
2. It reads only the columns that are used, unless it has options: a wrong type would pass.
3. It returns null for a wrong type. The column for corrupt records distinguishes that.
"""

from __future__ import annotations

from collections.abc import Iterable

from tidelog.spark.pipeline.file.schema_ddl import SchemaColumn

PARSED = "_tidelog_parsed"
REASON = "_tidelog_reason"
_TEXT = "CAST(value AS STRING)"
_BAD = "_tidelog_bad"
_OPTIONS = f"map('mode', 'PERMISSIVE', 'columnNameOfCorruptRecord', '{_BAD}')"
_ROW = f"get({PARSED}.r, 0)"
_NOTHING = "_tidelog_nothing"
"""A column that no record has: only JSON that is broken does not fit a schema of it."""
_BROKEN = "'the value is not one JSON document'"


def parsed_expression(columns: Iterable[SchemaColumn]) -> str:
    """SQL for the column PARSED."""
    fields = ", ".join(f"{each.quoted_name}: {each.type}" for each in columns)
    wrapped = f"""concat('{{"r":[', {_TEXT}, '],"e":true}}')"""
    schema = f"r ARRAY<STRUCT<{fields}>>, e BOOLEAN, {_BAD} STRING"
    return f"from_json({wrapped}, {_quoted(schema)}, {_OPTIONS})"


def reason_expression(columns: Iterable[SchemaColumn]) -> str:
    """SQL for the column REASON, over PARSED: why the record is dead, null if it is not."""
    columns = tuple(columns)
    misses = _missing([each for each in columns if each.is_required])
    return (
        "CASE"
        " WHEN value IS NULL THEN 'the value is null'"
        f" WHEN NOT is_valid_utf8({_TEXT}) THEN 'the value is not UTF-8'"
        f" WHEN {PARSED} IS NULL OR {PARSED}.{_BAD} IS NOT NULL OR {PARSED}.e IS NULL"
        f" OR size({PARSED}.r) <> 1 OR {_ROW} IS NULL THEN {_explanation(columns)}"
        f"{misses} END"
    )


def column_expressions(columns: Iterable[SchemaColumn]) -> list[str]:
    """SQL for the columns of records that did parse."""
    return [f"{_ROW}.{each.quoted_name} AS {each.quoted_name}" for each in columns]


def _missing(required: list[SchemaColumn]) -> str:
    """NOT NULL, which `from_json` does not check."""
    return "".join(
        f" WHEN {_ROW}.{each.quoted_name} IS NULL"
        f" THEN {_quoted(f'column {each.name} is missing or null')}"
        for each in required
    )


def _explanation(columns: tuple[SchemaColumn, ...]) -> str:
    """Computed for dead records only: CASE evaluates nothing else."""
    alone = f"json_array_length(concat('[', {_TEXT}, ']'))"
    is_broken = f"from_json({_TEXT}, '{_NOTHING} STRING, {_BAD} STRING', {_OPTIONS}).{_BAD}"
    faults = ", ".join(_fault(each) for each in columns)
    return (
        f"CASE WHEN {alone} IS NULL OR {alone} <> 1 THEN {_BROKEN}"
        f" WHEN NOT startswith(ltrim({_TEXT}), '{{') THEN 'the value is not a JSON object'"
        f" WHEN {is_broken} IS NOT NULL THEN {_BROKEN}"
        " ELSE coalesce(concat('the value does not fit the schema: ',"
        f" nullif(concat_ws(', ', {faults}), '')), {_BROKEN}) END"
    )


def _fault(column: SchemaColumn) -> str:
    """The column's name and type, if it alone does not parse either."""
    schema = f"{column.quoted_name} {column.type}, {_BAD} STRING"
    parsed = f"from_json({_TEXT}, {_quoted(schema)}, {_OPTIONS})"
    return (
        f"CASE WHEN {parsed}.{_BAD} IS NOT NULL"
        f" THEN {_quoted(f'{column.name} is not {column.type}')} END"
    )


def _quoted(text: str) -> str:
    """As a string in SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"
