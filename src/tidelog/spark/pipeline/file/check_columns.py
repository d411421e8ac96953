"""Columns by name, as far as they can be known without Spark: from schemas and plain queries.

Plain is `SELECT a, t.b, f(c) AS d, * FROM view`: each column is a name, or has one after AS. What
Spark would have to name itself, and whatever changes columns after the list (a join, a union, a
pivot), is left to Spark: a missing message is acceptable, a false alarm is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tidelog.spark.pipeline.file.check_sources import check_column
from tidelog.spark.pipeline.file.sections import Section
from tidelog.spark.pipeline.file.sql_tokens import Token, tokens_of
from tidelog.spark.pipeline.file.views import View, Views

_RAW_VALUE = "value"
_OPENING, _CLOSING = ("(", "["), (")", "]")
_CHANGES_COLUMNS = """
    UNION EXCEPT MINUS INTERSECT JOIN LATERAL PIVOT UNPIVOT TRANSFORM MAP REDUCE USING QUALIFY
    TABLESAMPLE MATCH_RECOGNIZE
"""
_CHANGING = frozenset(_CHANGES_COLUMNS.split())
_NO_COLUMNS = """
    CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME LOCALTIMESTAMP CURRENT_USER SESSION_USER USER
    NULL TRUE FALSE
"""
_NAMED_BY_SPARK = frozenset(_NO_COLUMNS.split())
_AFTER_RELATION = ("WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "OFFSET", "SORT", "WINDOW")


def find_columns(view: View, views: Views) -> None:
    """Set the columns of a step; those of earlier views must be set already."""
    sql = view.section.text("sql")
    if view.is_source or view.shape is None or sql is None:
        return
    plain = select_list(sql)
    if plain is None:
        return
    read = None if plain.relation is None else views.get(plain.relation)
    found: list[str] = []
    for name in plain.names:
        if name is not None:
            found.append(name)
        elif read is None or read.number >= view.number or read.columns is None:
            return
        else:
            found += read.columns
    view.columns = tuple(found)


def check_step_columns(view: View) -> None:
    """Check the columns that a step's keys name; those of a source are checked with it."""
    section = view.section
    if view.is_source:
        return
    watermark = section.document.values.get((*section.path, "watermark", "column"))
    if watermark is not None and isinstance(watermark.value, str):
        check_column(section, "watermark.column", watermark.value, view.columns)
    for column in section.texts("deduplicate"):
        check_column(section, "deduplicate", column, view.columns)


def check_sink_columns(section: Section, view: View) -> None:
    """Check the columns that a sink's keys name, and that raw records have a value."""
    key = section.text("key")
    if key is not None:
        check_column(section, "key", key, view.columns)
    for column in section.texts("partition_by"):
        check_column(section, "partition_by", column, view.columns)
    is_raw = "topic" in section.given and section.text("format") == "raw"
    columns = None if view.columns is None else [each.lower() for each in view.columns]
    if is_raw and columns is not None and _RAW_VALUE not in columns:
        section.error("format", f"raw rows need a column {_RAW_VALUE!r}; {view.name} has none")


@dataclass(frozen=True, slots=True, kw_only=True)
class SelectList:
    """Names in order; None means all columns of the one relation that is read."""

    names: tuple[str | None, ...]
    relation: str | None
    """Known only where it is a single view, without other names for its columns."""


def select_list(sql: str) -> SelectList | None:
    """None if the query is not plain. BadSql as in `tokens_of`."""
    outer = _outer(tokens_of(sql))
    if outer is None or not outer or not outer[0].is_word("SELECT"):
        return None
    if any(token.is_word(*_CHANGING) or token.is_symbol("|>") for token in outer):
        return None
    froms = [at for at, token in enumerate(outer) if token.is_word("FROM")]
    if len(froms) != 1 or outer[froms[0] - 1].is_word("DISTINCT"):
        return None
    listed = outer[1 : froms[0]]
    if listed and listed[0].is_word("DISTINCT", "ALL"):
        listed = listed[1:]
    names = [_name(item) for item in _items(listed)]
    if not all(name is None or name for name in names):
        return None
    return SelectList(names=tuple(names), relation=_relation(outer[froms[0] + 1 :]))


def _outer(tokens: list[Token]) -> list[Token] | None:
    """The tokens outside of brackets, with each opening bracket."""
    found: list[Token] = []
    depth = 0
    for token in tokens:
        if token.kind == "symbol" and token.text in _CLOSING:
            depth -= 1
        elif depth == 0 and not token.is_symbol(";"):
            found.append(token)
        if token.kind == "symbol" and token.text in _OPENING:
            depth += 1
    return found if depth == 0 else None


def _items(tokens: Iterable[Token]) -> list[list[Token]]:
    items: list[list[Token]] = [[]]
    for token in tokens:
        if token.is_symbol(","):
            items.append([])
        else:
            items[-1].append(token)
    return items


def _name(item: list[Token]) -> str | None:
    """A column's name, None for `*`, and an empty string where only Spark knows."""
    if len(item) == 1 and item[0].is_symbol("*"):
        return None
    if len(item) > 2 and item[-2].is_word("AS") and _is_name(item[-1]):
        return item[-1].text
    if len(item) == 1 and item[0].is_word(*_NAMED_BY_SPARK):
        return ""
    parts, points = item[::2], item[1::2]
    if all(map(_is_name, parts)) and all(each.is_symbol(".") for each in points):
        return item[-1].text if len(item) % 2 else ""
    return ""


def _is_name(token: Token) -> bool:
    return token.kind in ("word", "name")


def _relation(tokens: list[Token]) -> str | None:
    """`view`, `view v` or `view AS v`, if nothing else follows that belongs to it."""
    if not tokens or not _is_name(tokens[0]):
        return None
    rest = tokens[1:]
    if rest and rest[0].is_word("AS"):
        rest = rest[1:]
    if rest and _is_name(rest[0]) and not rest[0].is_word(*_AFTER_RELATION):
        rest = rest[1:]
    if rest and not rest[0].is_word(*_AFTER_RELATION):
        return None
    return tokens[0].text
