"""Columns by name, as far as they can be known without Spark: from schemas and plain queries."""

from __future__ import annotations

from tidelog.spark.pipeline.file.check_sources import check_column
from tidelog.spark.pipeline.file.sections import Section
from tidelog.spark.pipeline.file.select_list import select_list
from tidelog.spark.pipeline.file.views import View, Views

_RAW_VALUE = "value"


def find_columns(view: View, views: Views) -> None:
    """Of a step; those before it must be known already."""
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
    """What a step's own keys name. A source has checked its own."""
    section = view.section
    if view.is_source:
        return
    said = section.document.values.get((*section.path, "watermark", "column"))
    if said is not None and isinstance(said.value, str):
        check_column(section, "watermark.column", said.value, view.columns)
    for column in section.texts("deduplicate"):
        check_column(section, "deduplicate", column, view.columns)


def check_sink_columns(section: Section, view: View) -> None:
    """What a sink makes a key or directories of, and what raw records must have."""
    key = section.text("key")
    if key is not None:
        check_column(section, "key", key, view.columns)
    for column in section.texts("partition_by"):
        check_column(section, "partition_by", column, view.columns)
    is_raw = "topic" in section.given and section.text("format") == "raw"
    columns = None if view.columns is None else [each.lower() for each in view.columns]
    if is_raw and columns is not None and _RAW_VALUE not in columns:
        section.complain("format", f"raw rows need a column {_RAW_VALUE!r}; {view.name} has none")
